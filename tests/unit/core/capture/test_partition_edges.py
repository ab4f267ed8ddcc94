"""Edges from the graphs that tasks ran: through what travels, within a task, control edges."""

from __future__ import annotations

from types import SimpleNamespace as Obj

import pandas as pd

from tests.builders.cluster_traces import PS, graph_node, partition_graphs, worker, worker_trace
from workbench.core.capture.partition_edges import partition_edges
from workbench.core.trace.op_columns import NODE_COLUMNS

IDS, ROWS = "C1/embedding_lookup_sparse/Unique", "C1/embedding_lookup_sparse/Gather"


def edges_of(graphs, nodes) -> list[tuple[str, str, int]]:
    """Edges by name and op of their nodes."""
    words = [f"{name} ({op})" for name, op in zip(nodes["name"], nodes["op"], strict=True)]
    return [(words[a], words[b], control) for a, b, control in partition_edges(graphs, nodes)]


def test_an_edge_between_tasks_leads_through_the_tensor_that_travels():
    nodes = worker_trace().nodes
    assert set(edges_of(partition_graphs(), nodes)) == {
        (f"{IDS} (Unique)", f"{IDS} (RecvTensor)", 0),
        (f"{IDS} (RecvTensor)", f"{ROWS} (GatherV2)", 0),
        (f"{ROWS} (GatherV2)", f"{ROWS} (RecvTensor)", 0),
        (f"{ROWS} (RecvTensor)", "dense/MatMul (MatMul)", 0),
        ("dense/MatMul (MatMul)", "dense/MatMul (RecvTensor)", 0),
        ("dense/MatMul (RecvTensor)", "Adagrad/update (SparseApplyAdagrad)", 0),
        (f"{ROWS} (GatherV2)", "Adagrad/update (SparseApplyAdagrad)", 1),
    }


def test_what_goes_from_a_device_to_another_of_one_task_leads_from_op_to_op():
    gpu = worker(0).replace("CPU", "GPU")
    key = f"edge_9_a;{worker(0)};{gpu}"
    graphs = [
        Obj(
            node=[
                graph_node("a", "Mul", worker(0)),
                graph_node("a_S", "_Send", worker(0), "a", key),
            ]
        ),
        Obj(
            node=[graph_node("a_R", "_Recv", gpu, (), key), graph_node("b", "Neg", gpu, ["a_R:0"])]
        ),
    ]
    nodes = pd.DataFrame([("a", "Mul", worker(0)), ("b", "Neg", gpu)], columns=NODE_COLUMNS)
    assert edges_of(graphs, nodes) == [("a (Mul)", "b (Neg)", 0)]


def test_nodes_that_were_not_seen_have_no_edges():
    graphs = [
        Obj(node=[graph_node("b", "Neg", PS, ["a"]), graph_node("c", "Neg", PS, ["b", "^b"])])
    ]
    nodes = pd.DataFrame([("b", "Neg", PS), ("c", "Neg", PS)], columns=NODE_COLUMNS)
    assert edges_of(graphs, nodes) == [("b (Neg)", "c (Neg)", 0), ("b (Neg)", "c (Neg)", 1)]
    assert partition_edges([], nodes).shape == (0, 3)

"""What travels in a step: by edge, and by the lookup or variable that it belongs to."""

from __future__ import annotations

import pytest

from tests.builders.cluster_traces import worker_trace
from workbench.core.cluster.merge import merge_traces
from workbench.core.cluster.traffic import owner_of, traffic_by_edge, traffic_by_owner


def test_by_edge_per_step():
    table = traffic_by_edge(merge_traces([worker_trace(0), worker_trace(1)]))
    rows = table.set_index(["client", "sender", "receiver"])
    assert rows.loc[("worker 1", "worker 1", "ps 0")].tolist() == [2, 7200]
    assert rows.loc[("worker 0", "ps 0", "worker 0")].tolist() == [1, 6400]
    assert len(rows) == 4


def test_by_owner_per_step():
    table = traffic_by_owner(worker_trace(0)).set_index("owner")
    assert table.loc["C1/embedding_lookup_sparse", ["kind", "recvs", "bytes"]].tolist() == [
        "lookup",
        2,
        7200,
    ]
    assert table.loc["C1/embedding_lookup_sparse", "mean_bytes"] == 3600
    assert table.loc["dense/MatMul", "kind"] == "other"


@pytest.mark.parametrize(
    ("tensor", "owner"),
    [
        (
            "dlrm/C2/embedding_lookup/embedding_lookup_sparse/Unique",
            ("lookup", "dlrm/C2/embedding_lookup"),
        ),
        (
            "gradients/dlrm/C2/embedding_lookup/embedding_lookup_sparse/embedding_lookup_grad/Reshape",
            ("lookup", "dlrm/C2/embedding_lookup"),
        ),
        (
            "gradients/dlrm/C3/grouped_embedding_lookup/fused_embedding_lookup_grad/Post",
            ("lookup", "dlrm/C3/grouped_embedding_lookup"),
        ),
        ("dlrm/top_1/kernel/read", ("variable", "dlrm/top_1/kernel")),
        ("dlrm/top_1/bias/Read/ReadVariableOp", ("variable", "dlrm/top_1/bias")),
        ("gradients/dlrm/logit/MatMul_grad/MatMul_1", ("gradient", "dlrm/logit/MatMul")),
        (
            "packed/26_tensors_to_worker_0_hop_2/_1",
            ("packed", "26_tensors_to_worker_0_hop_2"),
        ),
        ("Adagrad/learning_rate", ("other", "Adagrad/learning_rate")),
    ],
)
def test_what_a_tensor_belongs_to(tensor, owner):
    assert owner_of(tensor) == owner

"""Work made faster or left out: which nodes it is, and what the step then takes."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tests.builders.graphs import graph
from workbench.core.prediction.costs.node_costs import CALL_NS, Costs
from workbench.core.simulation.pipeline import Input, outside_ops
from workbench.core.what_if.faster import (
    CLIENT_WORK,
    KINDS,
    PAGES_WORK,
    Faster,
    faster_costs,
    kinds_of_work,
    selected,
)
from workbench.errors import OptionError

MODEL = """
next = IteratorGetNext string
parse = DecodeCSV(next)
hash = StringToHashBucketFast(parse) int64
table = VariableV2 float32_ref
c/embedding_lookup_sparse/rows = GatherV2(table, hash)
c/embedding_lookup_sparse = SparseSegmentMean(c/embedding_lookup_sparse/rows)
dense/top = MatMul(c/embedding_lookup_sparse)
gradients/c/embedding_lookup_sparse_grad/sum = Op(dense/top)
Adagrad/update_table/apply = SparseApplyAdagrad(table, gradients/c/embedding_lookup_sparse_grad/sum)
"""


def costs() -> Costs:
    view = graph(MODEL)
    wait = Input(waits_ns=(100.0, 300.0), work=outside_ops(50.0), ahead=False)
    return Costs(span_ns=np.full(len(view), 10.0), inputs={view.number("next"): wait})


def test_each_node_is_of_one_kind_of_work():
    view = graph(MODEL)
    kinds = dict(zip(view.names, (KINDS[kind] for kind in kinds_of_work(view)), strict=True))
    assert [name for name, kind in kinds.items() if kind == "input"] == ["next", "parse"]
    assert [name for name, kind in kinds.items() if kind == "ids"] == ["hash"]
    assert [name for name, kind in kinds.items() if kind == "lookups"] == [
        "c/embedding_lookup_sparse/rows",
        "c/embedding_lookup_sparse",
        "gradients/c/embedding_lookup_sparse_grad/sum",
        "Adagrad/update_table/apply",
    ]
    assert kinds["dense/top"] == "dense"


@pytest.mark.parametrize(
    ("work", "names"),
    [
        ("dense/*", {"dense/top"}),
        ("Dense matmul", {"dense/top"}),
        ("Input, decode", {"next", "parse"}),
    ],
)
def test_work_is_chosen_by_kind_family_or_name(work: str, names: set[str]):
    view = graph(MODEL)
    assert {view.names[node] for node in np.flatnonzero(selected(view, work))} == names


def test_faster_work_takes_its_part_of_the_time_and_the_rest_stays():
    view = graph(MODEL)
    found = faster_costs(costs(), view, (Faster(work="dense/*", times=4.0),))
    assert found.span_ns[view.number("dense/top")] == 2.5
    assert found.span_ns.sum() == 10.0 * (len(view) - 1) + 2.5


def test_input_left_out_is_there_at_once():
    view = graph(MODEL)
    (each,) = faster_costs(costs(), view, (Faster(work="input"),)).inputs.values()
    assert (each.wait_ns, each.work.cpu_ns) == (0, 0)


def test_work_is_called_by_how_much_faster_it_is():
    assert Faster(work="lookups").label == "no lookups"
    assert Faster(work="lookups", times=2).label == "lookups 2× as fast"


def test_work_that_the_graph_has_none_of_is_refused():
    with pytest.raises(OptionError, match=r"no node of the graph is 'tower/\*'; expected one of"):
        selected(graph(MODEL), "tower/*")


@pytest.mark.parametrize("times", [0, -1, math.nan])
def test_a_speed_that_is_none_is_refused(times: float):
    with pytest.raises(OptionError, match="times as fast; expected above 0"):
        Faster(work="dense", times=times)


def test_a_client_without_its_own_work_still_calls():
    resting = dataclasses.replace(costs(), client_ns=20e6)
    view = graph(MODEL)
    gone = faster_costs(resting, view, (Faster(work=CLIENT_WORK),))
    assert gone.client_ns == CALL_NS and gone.span_ns.tolist() == resting.span_ns.tolist()
    half = faster_costs(resting, view, (Faster(work=CLIENT_WORK, times=2.0),))
    assert half.client_ns == 10e6
    busy = dataclasses.replace(costs(), client_ns=10_000.0)
    assert faster_costs(busy, view, (Faster(work=CLIENT_WORK),)).client_ns == 10_000.0


def test_ops_without_new_pages_take_less_each():
    view = graph(MODEL)
    known = costs()
    faults = dataclasses.replace(known, faults_ns=0.5 * float(known.op_ns.sum()))
    gone = faster_costs(faults, view, (Faster(work=PAGES_WORK),))
    assert gone.span_ns.tolist() == pytest.approx((0.5 * known.span_ns).tolist())
    assert gone.faults_ns == 0
    none = faster_costs(known, view, (Faster(work=PAGES_WORK),))
    assert none.span_ns.tolist() == known.span_ns.tolist()

"""Nodes on a parameter server: they run ahead where a worker reads them, and stay otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders.graphs import graph
from workbench.core.boundary.blockers import Reason
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.legality import boundary_of

WORKER, PS, OTHER_PS = (
    "/job:worker/task:0",
    "/job:ps/task:0",
    "/job:ps/replica:0/task:1/device:CPU:0",
)
# The update of a table makes the ids unique where the table is.
MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string
hash = StringToHashBucketFast(next) int64
table = VarHandleOp
rows = ResourceGather(table, hash)
loss = Sum(rows)
unique = Unique(hash) int64 int32
count = Shape(unique) int32
summed = UnsortedSegmentSum(loss, unique:1, count)
train = ResourceScatterAdd(table, unique, summed)
"""
HERE = dict.fromkeys(["it", "next", "hash", "loss"], WORKER)
THERE = dict.fromkeys(["table", "rows", "unique", "count", "summed", "train"], PS)


def boundary(text: str = MODEL, **devices: str) -> Boundary:
    return boundary_of(graph(text, devices={**HERE, **THERE, **devices}), targets=["train"])


def moved(found: Boundary) -> set[str]:
    (side,) = found.sides
    return {found.view.names[node] for node in np.flatnonzero(side.widest)}


def test_what_only_the_server_reads_stays_with_it():
    found = boundary()
    assert moved(found) == {"next", "hash"}
    refusal = found.refusal("count")
    assert refusal.reason is Reason.SERVER and refusal.path == ("count", "unique")
    assert found.explain("unique") == (
        "'unique' (Unique) stays: it runs on 'ps 0', and no other task reads what it gives: ahead "
        "of the step that would travel to the worker's buffer, and in the step back. To free it: "
        "place 'unique' on the worker."
    )


def test_the_first_of_them_alone_is_a_blocker():
    found = boundary()
    held = [each.node for each in found.blockers.values() if each.reason is Reason.SERVER]
    assert held == ["unique"]


@pytest.mark.parametrize("start", [WORKER, ""])
def test_what_a_worker_reads_runs_ahead_from_the_server(start: str):
    """Ids of a hash table there: with it goes what it needs."""
    text = MODEL.replace("ResourceGather(table, hash)", "ResourceGather(table, found)").replace(
        "rows =", "lower = StringLower(hash) string\nfound = LookupTableFindV2(lower) int64\nrows ="
    )
    text = text.replace("loss = Sum(rows)", "near = Cast(found)\nloss = Sum(rows, near)")
    found = boundary(text, lower=PS, found=PS, near=start, it=start, next=start)
    assert moved(found) == {"next", "hash", "lower", "found", "near"}


@pytest.mark.parametrize(
    "devices",
    [
        {"unique": WORKER, "count": WORKER},
        # A buffer beside an input on the server is no way there and back.
        {"it": PS, "next": PS},
        # Another worker's tasks are not looked at.
        {"unique": "/job:worker/task:1", "count": "/job:worker/task:1"},
        {"unique": "", "count": ""},
    ],
)
def test_elsewhere_they_run_ahead(devices: dict[str, str]):
    assert {"unique", "count"} <= moved(boundary(**devices))


def test_another_server_that_reads_it_is_no_worker():
    assert "unique" not in moved(boundary(summed=OTHER_PS, train=OTHER_PS))


def test_a_worker_that_waits_for_it_has_it_run_ahead():
    text = MODEL.replace("loss = Sum(rows)", "log = Mul(hash, ^unique)\nloss = Sum(rows, log)")
    lines = text.strip().splitlines()
    lines.insert(6, lines.pop(next(i for i, line in enumerate(lines) if "unique =" in line)))
    assert {"unique", "log"} <= moved(boundary("\n".join(lines), log=WORKER))


def test_a_stale_lookup_runs_ahead_and_the_update_beside_it_stays():
    found = boundary_of(graph(MODEL, devices={**HERE, **THERE}), targets=["train"], stale_lookups=1)
    assert moved(found) == {"next", "hash", "rows", "loss"}

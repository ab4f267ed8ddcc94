"""A boundary as bytes: what comes back, how large it is, and what is refused."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from tests.builders.graphs import graph
from tests.builders.plans import own_stage, towers
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.boundary.legality import boundary_of
from workbench.errors import DataError


def wide_graph(towers):
    lines = ["next = IteratorGetNext string"]
    for i in range(towers):
        lines += [
            f"embedding/column_{i}/split = StringSplit(next) int64 string",
            f"embedding/column_{i}/hash = StringToHashBucketFast(embedding/column_{i}/split:1)",
            f"embedding/column_{i}/weights = VariableV2",
            f"embedding/column_{i}/lookup = GatherV2(embedding/column_{i}/weights, "
            f"embedding/column_{i}/hash)",
        ]
    lookups = ", ".join(f"embedding/column_{i}/lookup" for i in range(towers))
    return graph("\n".join([*lines, f"loss = ConcatV2({lookups})"]))


@pytest.mark.parametrize("found", [towers(), towers(keep=["tower_0/hash"]), own_stage(capacity=3)])
def test_a_boundary_survives_saving(found):
    read = boundary_from_bytes(boundary_to_bytes(found))
    assert (read.view.names, read.view.ops) == (found.view.names, found.view.ops)
    assert read.view.outputs == found.view.outputs
    np.testing.assert_array_equal(read.view.data, found.view.data)
    np.testing.assert_array_equal(read.view.control, found.view.control)
    np.testing.assert_array_equal(read.step, found.step)
    assert (read.targets, read.blockers) == (found.targets, found.blockers)
    for after, before in zip(read.sides, found.sides, strict=True):
        assert after.start == before.start
        np.testing.assert_array_equal(after.legal, before.legal)
        np.testing.assert_array_equal(after.widest, before.widest)
    assert [str(refusal) for refusal in read.refusals()] == list(map(str, found.refusals()))


def test_the_users_own_stage_keeps_its_name_and_size():
    read = boundary_from_bytes(boundary_to_bytes(own_stage(capacity=3, num_threads=2)))
    (stage,) = read.view.stages.values()
    assert (stage.name, stage.options.capacity, stage.options.num_threads) == ("prefetch", 3, 2)


def test_equal_boundaries_give_equal_bytes():
    assert boundary_to_bytes(towers()) == boundary_to_bytes(towers())


def test_a_graph_of_thousands_of_nodes_is_small():
    found = boundary_of(wide_graph(1000), targets=["loss"])
    assert len(found.view) == 4002
    assert len(boundary_to_bytes(found)) < 15 * len(found.view)


def changed(**fields):
    document = json.loads(gzip.decompress(boundary_to_bytes(towers())))
    return gzip.compress(json.dumps({**document, **fields}).encode())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "is not a saved boundary: it cannot be unpacked: not a gzipped file"),
        (boundary_to_bytes(towers())[:40], "is not a saved boundary"),
        (gzip.compress(b"no", mtime=0), "is not a saved boundary: Expecting value"),
        (gzip.compress(b"[]", mtime=0), "has format version None; this Workbench reads 1"),
        (changed(format_version=2), "has format version 2; this Workbench reads 1"),
        (changed(step="101"), "is damaged: a set of nodes is '101' of 3; expected 17 times 0 or 1"),
        (
            changed(blockers=[[0, "ODD", ""]]),
            "the boundary is damaged: a node stays for the reason 'ODD', which is none",
        ),
        (
            changed(sides=[{}]),
            "the boundary is damaged: the boundary.sides[0] has no start; the file is damaged",
        ),
    ],
)
def test_what_is_no_boundary_is_refused(content, message):
    with pytest.raises(DataError) as caught:
        boundary_from_bytes(content)
    assert message in str(caught.value)

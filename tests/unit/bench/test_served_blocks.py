"""Blocks that another process runs."""

import sys

import pytest

from tests.bench.served_blocks import Served

_SERVING = """
from tests.bench.served_blocks import serve
def fails(steps):
    raise ValueError("no memory")
serve({"half": lambda steps: steps / 2, "fails": fails}, {"other": "is not installed"})
"""


@pytest.fixture
def served():
    process = Served([sys.executable, "-c", _SERVING])
    yield process
    process.end()


def test_blocks_of_another_process_are_run_by_name(served):
    assert set(served.blocks) == {"half", "fails"}
    assert served.problems == {"other": "is not installed"}
    assert [served.blocks["half"](steps) for steps in (1, 4)] == [0.5, 2.0]


def test_a_process_that_ended_is_said(served):
    with pytest.raises(SystemExit, match="ended: 1"):
        served.blocks["fails"](1)


def test_a_process_that_cannot_begin_is_said():
    with pytest.raises(SystemExit, match="ended: 3"):
        Served([sys.executable, "-c", "raise SystemExit(3)"])

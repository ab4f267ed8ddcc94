"""Ops as they ran, and the lines of the user's code that made them."""

from __future__ import annotations

import dataclasses
import os
import traceback

import pytest

import workbench
from workbench.core.tf_graph.op_sources import made_as, op_sources

LIBRARY = os.path.dirname(os.__file__) + "/site-packages/tensorflow/ops.py"
OWN_PACKAGE = os.path.dirname(workbench.__file__) + "/ops/lookup/fused.py"


@dataclasses.dataclass
class Op:
    traceback: list[traceback.FrameSummary]


class Graph:
    """Looks ops up as `tf.Graph` does."""

    def __init__(self, **lines: int) -> None:
        self.lines = {name.replace("__", "/"): line for name, line in lines.items()}

    def get_operation_by_name(self, name: str) -> Op:
        if name == "not//a name":
            raise ValueError("no valid name")
        return Op(
            [
                traceback.FrameSummary("/home/me/train.py", self.lines[name], "build"),
                traceback.FrameSummary(OWN_PACKAGE, 3, "look_up"),
                traceback.FrameSummary(LIBRARY, 9, "_apply_op"),
            ]
        )


GRAPH = Graph(dlrm__C1__x=1, x=2, dien__scan__while=3, dien=4)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("dlrm/C1/x", 1),
        ("x", 2),
        ("smart_stage/dlrm/C1/x", 1),
        ("dien/scan/while/body/_1/MatMul", 3),
        ("smart_stage/dien/scan/while/body/_1/MatMul", 3),
        ("Func/dien/scan/while/body/_1/input/_603", 3),
        ("dien/other", 4),
    ],
)
def test_the_line_of_an_op(name: str, line: int):
    assert op_sources(GRAPH, [name]) == [f"/home/me/train.py:{line} build"]


def test_an_op_that_nothing_in_the_graph_made_has_no_line():
    names = ["_arg_prefetch/owner_0_0", "y", "not//a name", ""]
    assert op_sources(GRAPH, names) == [""] * len(names)


def test_an_op_without_a_line_of_the_users_takes_none_of_another():
    class Library(Graph):
        def get_operation_by_name(self, name: str) -> Op:
            op = super().get_operation_by_name(name)
            return Op(op.traceback[1:]) if name == "dlrm/C1/x" else op

    assert op_sources(Library(dlrm__C1__x=1, dlrm__C1=2), ["dlrm/C1/x"]) == [""]


def test_likelier_names_come_first():
    assert list(made_as("s/a/b")) == ["s/a/b", "a/b", "s/a", "s", "a"]
    assert list(made_as("a")) == ["a"]

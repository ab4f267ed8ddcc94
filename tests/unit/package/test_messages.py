"""Errors and results of any origin: no longer than a screen, nothing in them steers a terminal."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.builders.comparisons import comparison
from tests.builders.plans import towers
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import StagePlan
from workbench.errors import (
    DataError,
    PlanError,
    RunError,
    TraceError,
    WorkbenchError,
    cut,
    visible,
)
from workbench.experiments.worker.wire.failure import failure_of
from workbench.viz.report import report_html

EVIL = "a\x1b[2J\u202eb\x9bc\ud800"
SEEN = "a\\x1b[2J\\u202eb\\x9bc\\ud800"


@pytest.mark.parametrize("kind", [DataError, TraceError, PlanError])
def test_an_error_that_quotes_a_file_is_one_line_with_its_advice(kind):
    said = str(kind("begin " + "x\n" * 10**6 + " do this"))
    assert len(said) <= 1000 and "\n" not in said
    assert said.startswith("begin x") and said.endswith(" do this")
    assert "more characters" in said


def test_other_errors_end_as_well():
    said = str(RunError("line\n" * 10**6))
    assert len(said) <= 20_000 and said.count("\n") > 100


def test_an_exception_of_the_users_own_is_cut():
    try:
        raise ValueError("x" * 10_000_000) from KeyError("y" * 10_000_000)
    except ValueError as error:
        failure = failure_of(error)
    assert len(failure.message) < 3_000 and "ValueError: xxx" in failure.message
    assert len(failure.details) < 201_000 and "KeyError" in failure.details


def test_what_is_short_is_not_cut():
    assert cut("abc", 3) == "abc"
    assert WorkbenchError("abc").args == ("abc",)


def test_what_a_reader_cannot_see_is_shown():
    assert visible(EVIL) == SEEN
    assert visible("a\tb\nçé ステージ \u200d") == "a\tb\nçé ステージ \u200d"


def unseen(text):
    return [c for c in text if c in "\x1b\u202e\x9b\ud800"]


def test_results_with_such_names_steer_nothing():
    shown = comparison(program=EVIL, command=EVIL, settings={EVIL: EVIL})
    bundle, _ = shown._repr_mimebundle_()
    for text in (str(shown), *bundle.values(), report_html(shown)):
        assert not unseen(text)
    assert str(shown).startswith(SEEN[:8])


def test_plans_and_boundaries_with_such_names_steer_nothing():
    document = json.loads(plan_stages(towers()).to_json())
    document["edits"][0]["reason"] = EVIL
    plan = StagePlan.from_json(json.dumps(document))
    graph = json.loads(gzip.decompress(boundary_to_bytes(towers())))
    graph["names"][3] = "a\x1b\u202e"
    boundary = boundary_from_bytes(gzip.compress(json.dumps(graph).encode()))
    for value in (plan, boundary):
        assert not any(map(unseen, value._repr_mimebundle_()[0].values()))
    assert not unseen(plan.describe()) and "\\x1b[2J" in plan.describe()
    assert not unseen(boundary.explain("a\x1b\u202e"))

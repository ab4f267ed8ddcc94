"""Toggles: what a program refuses is said where one would choose it."""

from __future__ import annotations

from tests.builders.panel_sessions import panel_session
from tests.builders.sessions import PROGRAM, build
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Program
from workbench.experiments.session.session import Session
from workbench.viz.panel.settings.groups import groups_of, unfit_options


def group(program, key):
    return next(each for each in groups_of(program) if each.key == key)


def make():
    return None, None


def make_batches(batch_size=128):
    return None, None


def test_a_function_has_no_stage_of_its_own():
    own = group(FunctionProgram(name="f", make=make), "stage").options[1]
    assert own.value == "own"
    assert own.refused.startswith("Mine: the program is a function")
    assert not group(PROGRAM, "stage").options[1].refused


def test_a_function_has_no_thread_pool_for_its_stage():
    refused = group(FunctionProgram(name="f", make=make), "stage").flag.refused
    assert refused.startswith("Thread pool of its own: the program is a function")
    assert not group(PROGRAM, "stage").flag.refused


def test_a_boundary_can_be_run_once_it_was_moved():
    moved = group(PROGRAM, "stage").options[3]
    assert moved.refused == "Moved: move ops across the line in the Boundary tab first."
    assert not groups_of(PROGRAM, cut="-hash")[0].options[3].refused


def test_the_size_of_a_batch_is_chosen_where_the_program_says_its_own():
    known = group(PROGRAM, "batch_size")
    assert (known.refused, known.numbers[0].auto, known.numbers[0].step) == ("", "8", 8)
    unknown = group(Program(name="p", build=build), "batch_size")
    assert "does not say how its batches can have another size" in unknown.refused
    assert (
        group(FunctionProgram(name="f", make=make_batches), "batch_size").numbers[0].auto == "128"
    )


def test_every_toggle_has_a_sentence_of_help():
    for each in groups_of(None):
        assert each.help.endswith(".")
        assert each.title


def test_what_the_graph_has_no_use_for_is_refused():
    found = groups_of(PROGRAM, {"v1": "V1: nothing to fuse."})
    fusion = next(each for each in found if each.key == "fusion")
    assert [option.refused for option in fusion.options] == ["", "V1: nothing to fuse.", "", "", ""]


def test_what_the_programs_graphs_have_no_use_for_is_known_after_a_run(monkeypatch):
    assert unfit_options(Session(PROGRAM)) == {}
    words = "the program builds no embedding lookup through Workbench."
    found = unfit_options(panel_session(monkeypatch))
    assert found == dict.fromkeys(("v1", "v2", "grouped"), f"V1, V2, Grouped: {words}")


def test_stale_lookups_are_of_stages_that_are_found_and_exact_by_themselves():
    *_, stale = group(PROGRAM, "stage").numbers
    assert (stale.key, stale.auto, stale.stages) == ("stale_lookups", "exact", ("smart", "moved"))

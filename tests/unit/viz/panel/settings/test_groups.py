"""Toggles: what a program refuses is said where one would choose it."""

from __future__ import annotations

import workbench as wb
from tests.builders.panel_sessions import panel_session
from tests.builders.sessions import PROGRAM, build
from workbench.core.toggles.built_in import WITH_POSITIONS
from workbench.core.toggles.environment import SavedEnvironmentToggle
from workbench.core.toggles.stock import STOCK
from workbench.core.toggles.toggle import Toggle
from workbench.experiments.program.function_program import FunctionProgram
from workbench.experiments.program.program import Program
from workbench.experiments.session.session import Session
from workbench.viz.panel.settings import toggle_groups
from workbench.viz.panel.settings.group import OWN_SECTION, TENSORFLOW, WORKBENCH
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
    assert [each.value for each in group(PROGRAM, "stage").options] == ["off", "own", "smart"]
    moved = groups_of(PROGRAM, cut="-hash")[0].options[3]
    assert (moved.value, moved.refused) == ("moved", "")


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
        assert each.help.endswith(".") and "  " not in each.help
        assert each.title


def test_every_position_of_workbench_says_in_a_few_words_what_it_does():
    for toggle in WITH_POSITIONS:
        for position in toggle.positions:
            assert position.help.endswith(".") and len(position.help.split()) <= 12


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


class TestChoices:
    DIM = wb.Toggle("embedding_dim", [16, 32], help="Numbers of a row.")

    def drawn(self, program=PROGRAM, toggles=()):
        return {each.toggle: each for each in groups_of(program, toggles=toggles) if each.toggle}

    def test_every_toggle_of_tensorflow_is_drawn_from_its_value(self):
        drawn = self.drawn()
        assert [*drawn] == [each.name for each in STOCK]
        for toggle in STOCK:
            group = drawn[toggle.name]
            assert group.section == TENSORFLOW and toggle.help in group.help
            assert [each.value for each in group.options] == [*map(str, toggle.choices)]
            assert group.title.lower() == toggle.title.lower()
            usual, *others = group.options
            assert not usual.refused
            for option, choice in zip(others, toggle.choices[1:], strict=True):
                refused = toggle.refusal(choice, is_function=False)
                assert bool(option.refused) == bool(refused) and refused in option.refused
        assert [each.label for each in drawn["precision"].options] == ["float32", "bfloat16"]
        assert drawn["onednn"].title == "oneDNN" and drawn["grappler"].listed
        assert drawn["grappler"].options[2].label == "No memory optimizer"
        assert "process of its own" in drawn["onednn"].help

    def test_a_new_one_needs_no_line_of_the_panel(self, monkeypatch):
        new = Toggle("warp", ("off", "on"), help="Goes faster.", training="same")
        monkeypatch.setattr(toggle_groups, "STOCK", (new, *STOCK))
        group = next(each for each in groups_of(PROGRAM) if each.toggle == "warp")
        assert (group.title, group.help, group.more) == ("Warp", "Goes faster.", True)
        assert [each.label for each in group.options] == ["Off", "On"]

    def test_those_that_are_not_needed_at_first_stand_in_a_fold(self):
        found = groups_of(PROGRAM)
        workbench = [each.key for each in found if each.section == WORKBENCH and not each.more]
        assert workbench == ["stage", "fusion", "executor"]
        assert all(each.more for each in found if each.section == TENSORFLOW)

    def test_an_authors_own_are_drawn_only_where_there_are_some(self):
        assert not [each for each in groups_of(PROGRAM) if each.section == OWN_SECTION]
        jit = wb.Toggle("jit", [False, True], label="JIT", training="same")
        variable = wb.toggles.EnvironmentToggle("TF_X", ["0", "1"])
        drawn = self.drawn(toggles=[self.DIM, jit, variable])
        own = [drawn[name] for name in ("embedding_dim", "jit", "TF_X")]
        assert {each.section for each in own} == {OWN_SECTION}
        assert [each.title for each in own] == ["Embedding dim", "JIT", "TF_X"]
        assert [option.label for option in own[1].options] == ["false", "true"]
        assert ["both loss curves" in option.warns for option in own[0].options] == [False, True]
        assert not [option.warns for option in own[1].options if option.warns]
        assert "process of its own" in own[2].help

    def test_what_a_function_cannot_have_is_refused_with_the_reason(self):
        xla = self.drawn(FunctionProgram(name="f", make=make))["xla"]
        assert [each.refused.split(",")[0] for each in xla.options] == [
            "",
            "Clusters: clusters are of a session's graph; of a tf.function have xla=function.",
            "",
        ]

    def test_a_variable_that_a_file_names_is_refused(self):
        saved = SavedEnvironmentToggle("LD_PRELOAD", ["x", "y"])
        group = self.drawn(toggles=[saved])["LD_PRELOAD"]
        assert not group.options[0].refused
        assert "files may come from anybody" in group.options[1].refused

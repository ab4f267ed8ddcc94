"""Boundary view: what stands where, what travels, why the rest stays; needs no TensorFlow."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pytest

from tests.builders.graphs import graph
from tests.builders.plans import (
    OWN_STAGE,
    own_stage,
    planned_stage,
    predictions,
    stage_plan,
    towers,
)
from workbench.core.boundary.blockers import Reason
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import Edit, StagePlan
from workbench.viz.boundary import causes, refusals
from workbench.viz.boundary.view import boundary_view

UNREAD = (
    "Nothing in the step reads the batch itself; it travels so that whatever else is fetched is "
    "computed from the step's own batch."
)


def shown(view, place, region=0):
    """The boxes of a region as (label, about)."""
    return [
        (view.boxes[box].label, view.boxes[box].about)
        for box in view.areas[place].regions[region].boxes
    ]


def box(view, title):
    (found,) = [each for each in view.boxes if each.title == title]
    return found


def sentence(view):
    return "".join(text for text, _ in view.sentence)


@pytest.fixture(scope="module")
def planned():
    return boundary_view(plan_stages(towers()))


def test_the_areas_follow_the_data(planned):
    assert [(area.kind, area.title, area.tensors) for area in planned.areas] == [
        ("stage", "Stage “smart_stage_input”", "2"),
        ("stage", "Stage “smart_stage”", "4"),
        ("compute", "Compute side", ""),
    ]
    assert planned.areas[0].about == "1 thread, buffer of 1 item"
    assert planned.areas[1].travels == "4 tensors travel: 2 string, 2 int64."
    assert shown(planned, 0) == [("next", "IteratorGetNext")]
    # what the first stage holds is not shown again in the second
    assert shown(planned, 1) == [
        ("tower_0…tower_1/split", "2 × StringSplit"),
        ("tower_0…tower_1/hash", "2 × StringToHashBucketFast"),
    ]


def test_boxes_say_what_travels_and_what_is_read(planned):
    assert box(planned, "tower_0…tower_1/split").travels == ""
    made = box(planned, "tower_0…tower_1/hash")
    assert made.travels == "2"
    assert made.explanation == (
        "Runs ahead of the step in stage “smart_stage”. 2 tensors travel: int64."
    )
    read = box(planned, "net/lookup…lookup_1")
    assert (read.about, read.reads) == ("2 × GatherV2", "2")
    assert read.explanation == "Reads 2 tensors out of the buffer. Stays on the compute side."


def test_refused_nodes_stand_next_to_the_boundary_with_their_reasons(planned):
    near = planned.areas[2].regions[0]
    assert near.title == "Next to the boundary"
    words = {
        planned.boxes[place].title: [
            planned.reasons[mark].word for mark in planned.boxes[place].marks
        ]
        for place in near.boxes
    }
    assert words == {
        "net/lookup…lookup_1": ["reads a variable"],
        "noise": ["stateful op"],
        "loop/Enter": ["inside control flow"],
    }
    assert shown(planned, 2, region=1) == [
        ("net/dropped", "Mul"),
        ("net/joined", "ConcatV2"),
        ("loss", "Mean"),
        ("Does not depend on the input", "5 nodes"),
    ]


def test_a_refusal_is_told_once_for_nodes_that_are_alike(planned):
    first = planned.rows[0]
    assert (first.title, first.op, first.nodes) == ("net/lookup…lookup_1", "GatherV2", "2")
    assert first.near
    assert first.blocker == "table_0…table_1"
    assert first.detail == "'table_0' is a variable."
    assert first.path == ("net/lookup", "table_0")
    assert first.change.startswith("Read a table or a constant instead of the variable 'table_0'")
    assert first.names == ("net/lookup", "net/lookup_1")
    told = {row.title: row.detail for row in planned.rows}
    assert told["noise"] == "It has state or effects of its own (RandomUniform)."


def test_words_are_those_of_the_refusal(planned):
    boundary = towers()
    for row in planned.rows:
        refusal = boundary.refusal(row.names[0])
        assert row.path == refusal.path
        assert row.change.rstrip(".").lower() == refusal.change.lower()
        assert planned.reasons[row.reason].word == refusal.reason.value


def test_reasons_are_counted_most_first(planned):
    assert [(r.code, r.word, r.nodes, r.rows) for r in planned.reasons] == [
        ("CF", "inside control flow", "3", 3),
        ("VA", "reads a variable", "2", 1),
        ("ST", "stateful op", "2", 2),
        ("AH", "may run ahead, left", "", 0),
    ]


def test_every_reason_has_a_code_of_its_own():
    assert set(refusals.CODES) == set(Reason)
    codes = [*refusals.CODES.values(), refusals.LEFT.code]
    assert len(set(codes)) == len(codes)


def test_each_buffer_lists_what_travels_and_who_reads_it(planned):
    first, second = planned.cuts
    assert first.caption == "Through the buffer of “smart_stage_input”: 2 tensors"
    assert first.rows == (("next", "2", "string", "tower_0…tower_1/split", ""),)
    assert second.rows == (
        ("next", "2", "string", "", UNREAD),
        ("tower_0…tower_1/hash", "2", "int64", "net/lookup…lookup_1, noise, 1 more", ""),
    )


def test_what_nothing_reads_says_why_it_travels(planned):
    alone = boundary_view(towers())
    assert box(alone, "next").explanation.endswith(f"2 tensors travel: string. {UNREAD}")
    # the first stage hands it to the second, which reads it
    assert UNREAD not in box(planned, "next").explanation
    some = boundary_of(
        graph("next = IteratorGetNext string int64\nw = VariableV2\nloss = Mul(next:1, w)"),
        targets=["loss"],
    )
    assert boundary_view(some).cuts[0].rows == (
        ("next", "2", "1 string, 1 int64", "loss",
         "1 of them are read by nothing: all outputs of a node travel together."),
    )  # fmt: skip
    saved = boundary_view(StagePlan.from_json(plan_stages(towers()).to_json()))
    assert {row[4] for cut in saved.cuts for row in cut.rows} == {"Not known without the graph."}


def test_what_your_stage_puts_in_for_nothing_says_so():
    text = OWN_STAGE.replace("scaled = Mul(hash, take:1)", "scaled = Neg(hash)")
    view = graph(text, shared={"put": "clicks", "take": "clicks"}, stage=StageOptions())
    rows = boundary_view(boundary_of(view, targets=["loss"])).cuts[0].rows
    assert [row[4] for row in rows] == [
        "1 of them are read by nothing: your stage puts it into the buffer; nothing in the step "
        "reads it."
    ]


def test_the_sentence_has_the_answer(planned):
    assert sentence(planned) == (
        "5 nodes run ahead of the step in two chained stages; 4 tensors travel to the compute "
        "side. 7 more depend on the input and stay (inside control flow 3, reads a variable 2, "
        "stateful op 2), 4 of them behind table_0…table_1."
    )
    assert [text for text, strong in planned.sentence if strong] == [
        "5 nodes run ahead",
        "4 tensors",
    ]


def test_predictions_are_fractions_of_the_slowest():
    made = dataclasses.replace(plan_stages(towers()), predictions=predictions(12.0, 8.0))
    view = boundary_view(made)
    assert sentence(view).endswith("Predicted: 1.50× as fast as un-staged.")
    unstaged, chosen = view.candidates
    assert (unstaged.label, unstaged.ratio, unstaged.at) == ("Un-staged", "1.00×", 1.0)
    assert (chosen.step, chosen.bound, chosen.ratio) == ("8.0\u00a0ms", "7.2\u00a0ms", "1.50×")
    assert (chosen.chosen, chosen.limited_by) == (True, "the cores")
    assert chosen.at == pytest.approx(2 / 3)
    assert chosen.bound_at == pytest.approx(0.6)


def test_edits_keep_their_reasons(planned):
    assert [name for name, _ in planned.edits] == ["New stage for the input", "New stage"]
    assert "so that pre-processing never waits" in planned.edits[0][1]


def test_a_boundary_alone_shows_what_may_run_ahead():
    view = boundary_view(towers())
    assert [area.kind for area in view.areas] == ["may", "compute"]
    assert sentence(view).startswith("5 nodes may run ahead of the step. 7 more depend")
    assert view.cuts[0].caption == "Would travel: 4 tensors"
    assert (view.edits, view.candidates) == ((), ())
    told = box(view, "tower_0…tower_1/hash").explanation
    assert told.startswith("May run ahead: depends on the input, on no state.")


def test_a_narrower_plan_leaves_what_may_run_ahead():
    narrow = planned_stage(
        start=("next",),
        moved=("next",),
        moved_ops=("IteratorGetNext",),
        carried=("next",),
        dtypes=(("string", "string"),),
    )
    view = boundary_view(stage_plan(narrow, boundary=towers()))
    left = box(view, "tower_0…tower_1/split")
    assert [view.reasons[mark].word for mark in left.marks] == ["may run ahead, left"]
    assert left.explanation.endswith("May run ahead; the plan leaves it on the compute side.")
    assert not view.reasons[left.marks[0]].refused
    assert not left.rows


def test_your_own_stage_has_an_area_of_its_own():
    view = boundary_view(plan_stages(own_stage(num_threads=2, capacity=3)))
    assert [(area.kind, area.title) for area in view.areas] == [
        ("own", "Your stage “prefetch”"),
        ("stage", "Stage “smart_stage”"),
        ("compute", "Compute side"),
    ]
    assert view.areas[0].about == "2 threads, buffer of 3 items"
    # neither the buffer's own ops nor its take are boxes
    assert shown(view, 0) == [("it", "IteratorV2"), ("next", "IteratorGetNext")]
    assert box(view, "next").travels == "2"
    assert view.cuts[0].rows == (("next", "2", "1 string, 1 int64", "hash, scaled", ""),)
    assert "in stage “smart_stage” behind your stage" in sentence(view)


def test_a_widened_stage_is_one_area():
    boundary = own_stage()
    made = planned_stage(
        widens=True,
        own_name="prefetch",
        start=("take",),
        moved=("take", "hash", "scaled"),
        moved_ops=("WorkbenchBufferTake", "StringToHashBucketFast", "Mul"),
        carried=("take", "scaled"),
        dtypes=(("string", "int64"), ("int64",)),
    )
    view = boundary_view(stage_plan(made, boundary=boundary))
    assert [area.title for area in view.areas] == ["Your stage “prefetch”, widened", "Compute side"]
    assert {"next", "hash", "scaled"} <= {label for label, _ in shown(view, 0)}


def test_a_plan_that_changes_nothing_says_why():
    edit = Edit(name="stage nothing", reason="nothing else is predicted to be faster")
    view = boundary_view(stage_plan(edits=(edit,), boundary=towers()))
    assert sentence(view) == "Stage nothing: nothing else is predicted to be faster."
    assert [area.kind for area in view.areas] == ["may", "compute"]


def test_two_inputs_are_two_chains():
    text = """
    a = IteratorGetNext
    b = IteratorGetNext
    pa = Log1p(a)
    pb = Log1p(b)
    v = VariableV2
    joined = AddN(pa, pb, v)
    """
    boundary = boundary_of(graph(text), targets=["joined"], starts=["a", "b"])
    view = boundary_view(plan_stages(boundary))
    assert [(area.kind, area.chain) for area in view.areas] == [
        ("stage", 0),
        ("stage", 0),
        ("stage", 1),
        ("stage", 1),
        ("compute", 0),
    ]
    assert sentence(view).startswith("4 nodes run ahead of the step in four stages; 4 tensors")


def test_nothing_may_run_ahead():
    text = """
    next = IteratorGetNext
    w = VariableV2
    loss = Mul(next, w)
    """
    view = boundary_view(boundary_of(graph(text), targets=["loss"], keep=["next"]))
    assert [area.kind for area in view.areas] == ["compute"]
    assert sentence(view).startswith("Nothing more may run ahead of the step.")
    assert view.areas[0].regions[0].boxes == ()
    assert view.areas[0].regions[0].empty == "Nothing here reads what runs ahead."


def test_a_view_survives_json(planned):
    content = planned.to_json()
    assert json.loads(json.dumps(content)) == content
    assert content["version"] == 4


def test_a_plan_is_drawn_alike_after_its_boundary_was_saved():
    for found in (plan_stages(towers()), plan_stages(own_stage(num_threads=2, capacity=3))):
        read = boundary_from_bytes(boundary_to_bytes(found.boundary))
        saved = dataclasses.replace(StagePlan.from_json(found.to_json()), boundary=read)
        assert boundary_view(saved) == boundary_view(found)


def test_boxes_follow_the_data():
    text = """
    parse = DecodeCSV(next) string
    z = Neg(parse)
    next = IteratorGetNext string
    a = Log1p(z)
    w = VariableV2
    late = Mul(early, w)
    early = Mul(a, w)
    loss = Mul(late, next)
    """
    view = boundary_view(boundary_of(graph(text), targets=["loss"]))
    assert [label for label, _ in shown(view, 0)] == ["next", "parse", "z", "a"]
    assert [view.boxes[at].feeds for at in view.areas[0].regions[0].boxes] == [True] * 3 + [False]
    assert [label for label, _ in shown(view, 1)] == ["early", "loss"]


def test_causes_are_ranked_by_what_they_hold_back(planned):
    assert [(c.title, c.about, c.behind, c.alone) for c in planned.causes] == [
        ("table_0…table_1", "2 × VariableV2", "4", "2"),
        ("noise", "RandomUniform", "4", "1"),
        ("loop/Enter", "Enter", "3", "1"),
    ]
    first = planned.causes[0]
    assert planned.reasons[first.reason].word == "reads a variable"
    assert first.share == pytest.approx(4 / 7)
    assert first.change.startswith("Read a table or a constant instead of the variable 'table_0'")
    assert {row.title: planned.causes[row.cause].title for row in planned.rows[:3]} == {
        "net/lookup…lookup_1": "table_0…table_1",
        "noise": "noise",
        "loop/Enter": "loop/Enter",
    }


def test_a_box_names_what_holds_it_back(planned):
    assert box(planned, "net/lookup…lookup_1").held_by == "table_0…table_1"
    assert box(planned, "loss").held_by == "loop/Enter"
    several = boundary_view(boundary_of(big_graph(2), targets=["loss"]))
    assert "t0…t1/w" in {each.held_by for each in several.boxes}


def test_few_causes_have_a_row(monkeypatch):
    monkeypatch.setattr(causes, "MOST_CAUSES", 1)
    view = boundary_view(towers())
    assert (len(view.causes), view.more_causes) == (1, "2")
    assert sorted({row.cause for row in view.rows}) == [-1, 0]


def test_a_plan_without_its_graph_shows_what_it_moves():
    made = StagePlan.from_json(plan_stages(towers()).to_json())
    view = boundary_view(made)
    assert "was read from JSON and holds no graph" in view.notice
    assert [area.kind for area in view.areas] == ["stage", "stage"]
    assert shown(view, 1)[0] == ("tower_0…tower_1/split", "2 × StringSplit")
    assert view.rows == ()
    assert sentence(view).startswith("5 nodes run ahead of the step in two chained stages; 4")


def big_graph(towers):
    """Towers of 10 nodes that may run ahead and 40 that read a variable."""
    lines = ["next = IteratorGetNext"]
    ends = []
    for tower in range(towers):
        before = "next"
        for i in range(50):
            name = f"t{tower}/{'pre' if i < 10 else 'net'}/{chr(97 + i % 26)}{chr(97 + i // 26)}"
            weight = f", t{tower}/w" if i >= 10 else ""
            lines.append(f"{name} = Mul({before}{weight})")
            before = name
        lines.insert(1, f"t{tower}/w = VariableV2")
        ends.append(before)
    lines.append(f"loss = AddN({', '.join(ends)})")
    return graph("\n".join(lines))


def test_thousands_of_nodes_stay_a_handful_of_boxes():
    view = boundary_view(plan_stages(boundary_of(big_graph(60), targets=["loss"])))
    at_once = sum(len(region.boxes) for area in view.areas for region in area.regions)
    assert at_once <= 30
    assert max(len(each.boxes) for each in view.boxes) <= 12
    assert len(view.boxes) < 300
    assert {row.nodes for row in view.rows[:5]} == {"60"}
    assert len(view.rows[0].names) == 40
    assert len(json.dumps(view.to_json())) < 500_000


def test_rows_beyond_the_limit_are_counted(monkeypatch):
    monkeypatch.setattr(refusals, "MOST_ROWS", 3)
    view = boundary_view(towers())
    assert len(view.rows) == 3
    assert view.more_rows == "3"
    # a box whose refusal is left out still has its reason
    last = box(view, "loss")
    assert last.marks
    assert last.rows == ()


def test_other_blockers_are_looked_for_while_that_is_quick(monkeypatch):
    def change():
        rows = {row.title: row.change for row in boundary_view(towers()).rows}
        return rows["net/joined"]

    assert "would have to be freed as well" in change()
    monkeypatch.setattr(refusals, "_LOOKS", 0)
    monkeypatch.setattr(refusals, "_FEWEST_FULL", 0)
    assert "would have to be freed as well" not in change()


def test_long_paths_are_cut_in_the_middle():
    chain = "\n".join(f"n{i} = Neg({f'n{i - 1}' if i else 'w, next'})" for i in range(30))
    text = f"next = IteratorGetNext\nw = VariableV2\n{chain}\nloss = Mean(n29)"
    rows = boundary_view(boundary_of(graph(text), targets=["loss"])).rows
    assert all(len(row.path) <= 13 for row in rows)
    assert any("…" in row.path for row in rows)


def test_an_area_says_how_its_stage_runs():
    made = plan_stages(towers(), SmartStageOptions(num_threads=3, reorder=True, capacity=2))
    assert boundary_view(made).areas[1].about == "3 threads, buffer of 2 items"


def test_views_need_no_tensorflow():
    code = (
        "import sys, workbench.viz.boundary.view, workbench.viz.boundary.html;"
        "print([m for m in ('tensorflow', 'anywidget') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

"""What a user calls runs, notes, groups them by and deletes; undone, saved and read again."""

from __future__ import annotations

import json

import pytest

import workbench as wb
from tests.builders.sessions import INLINE, OFF, PROGRAM, STAGE, WIDE, measured
from workbench.errors import OptionError
from workbench.experiments.session.session import Session


@pytest.fixture
def session():
    made = Session(PROGRAM)
    made.add(measured([OFF, STAGE, INLINE]), [OFF, STAGE, INLINE])
    return made


def words(session):
    return [(run.number, run.name, run.note, run.group) for run in session.runs]


def test_a_run_has_a_name_a_note_and_a_group_of_its_own(session):
    run = session.describe_run(2, name=" my  best ", note=" on a quiet machine\n", group="stages")
    assert (run.name, run.note, run.group) == ("my best", "on a quiet machine", "stages")
    assert session.describe_run(2, note="").note == ""
    assert words(session) == [
        (1, "", "", ""),
        (2, "my best", "", "stages"),
        (3, "", "", ""),
    ]
    assert session.runs[1].measured is run.measured


def test_what_was_changed_is_taken_back_and_done_again(session):
    before = session.runs
    session.describe_run(2, name="one")
    session.describe_run(2, name="two")
    session.delete_run(3)
    assert [run.number for run in session.runs] == [1, 2]
    assert session.undo()
    assert [run.number for run in session.runs] == [1, 2, 3]
    assert session.undo() and session.run_numbered(2).name == "one"
    assert session.redo() and session.run_numbered(2).name == "two"
    session.describe_run(2, name="three")
    # another change: what was taken back before is gone
    assert not session.redo()
    while session.undo():
        pass
    assert session.runs == before


def test_a_change_of_another_thread_meanwhile_is_kept(session):
    before = session._kept.edits
    session.delete_run(3)
    assert session._kept.edits is not before
    # Words are added to what is there when they are, not to what was there when they were asked.
    session._kept.edit(lambda edits: edits.described(2, {"name": "mine"}))
    assert words(session) == [(1, "", "", ""), (2, "mine", "", "")]


def test_a_run_that_was_deleted_keeps_its_number(session):
    session.delete_run(3)
    session.add(measured([OFF, WIDE]), [OFF, WIDE])
    assert [run.number for run in session.runs] == [1, 2, 4]
    assert session.run_numbered(4).optimizations == WIDE
    with pytest.raises(OptionError, match="there is no run 3; expected one of 1, 2, 4"):
        session.run_numbered(3)
    assert session.run_of(INLINE) is None
    session.undo()
    assert [run.number for run in session.runs] == [1, 2, 3, 4]


def test_without_the_baselines_own_run_the_next_one_brings_it_again(session):
    session.delete_run(1)
    session.add(measured([OFF, WIDE]), [OFF, WIDE])
    assert [(run.number, run.is_baseline) for run in session.runs] == [
        *((2, False), (3, False), (4, True), (5, False)),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"number": 9, "name": "x"}, "there is no run 9; expected one of 1, 2, 3"),
        ({"number": 2, "color": "red"}, "a run has no 'color'; expected name=, note= or group="),
        ({"number": 2, "name": "x" * 81}, "the name of a run has 81 characters; expected at most"),
        ({"number": 2, "note": 3}, "the note of a run is 3; expected a text"),
    ],
)
def test_what_is_no_run_or_no_word_is_refused(session, given, message):
    with pytest.raises(OptionError, match=message):
        session.describe_run(**given)
    assert not session.undo()


def test_a_saved_session_has_the_words_and_lacks_what_was_deleted(session, tmp_path):
    session.describe_run(2, name="mine", note="two\nlines", group="stages")
    session.delete_run(1)
    session.save(tmp_path)
    loaded = wb.load_session(tmp_path, PROGRAM)
    assert words(loaded) == [(2, "mine", "two\nlines", "stages"), (3, "", "", "")]
    assert not loaded.undo()
    loaded.add(measured([OFF, WIDE]), [OFF, WIDE])
    assert [run.number for run in loaded.runs] == [2, 3, 4, 5]


def test_a_session_of_the_format_before_is_read(session, tmp_path):
    session.save(tmp_path)
    path = tmp_path / "session.json"
    index = json.loads(path.read_text())
    index["format_version"] = 1
    del index["stop_when_clear"]
    for run in index["runs"]:
        for key in ("name", "note", "group"):
            del run[key]
    path.write_text(json.dumps(index))
    assert words(wb.load_session(tmp_path)) == [(n, "", "", "") for n in (1, 2, 3)]

"""What phases took is kept for the next estimate; what cannot be read is as if unknown."""

from __future__ import annotations

import json

import pytest

from workbench.experiments.measurement.phase_times import PhaseTimes, phase_times


def test_the_median_of_the_newest_five_counts(tmp_path):
    path = tmp_path / "deep" / "times.json"
    for seconds in (90.0, 80.0, 1.0, 2.0, 3.0, 4.0, 5.0):
        PhaseTimes(path).learn("off, stage", {"build": seconds})
    times = PhaseTimes(path)
    assert times.seconds("build", "off, stage") == 3.0
    assert times.seconds("trace", "off, stage") is None


def test_another_setting_tells_where_its_own_is_not_known(tmp_path):
    times = PhaseTimes(tmp_path / "times.json")
    times.learn("a", {"build": 2.0, "check": 5.0})
    times.learn("b", {"build": 4.0})
    assert times.seconds("build", "c") == 3.0
    assert times.seconds("check", "b") == 5.0
    assert PhaseTimes(tmp_path / "times.json").seconds("build", "b") == 4.0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"format": 1}',
        '{"format": 99, "seconds": {}}',
        '{"format": 1, "seconds": 3}',
    ],
)
def test_a_damaged_file_is_as_if_there_were_none(tmp_path, content):
    path = tmp_path / "times.json"
    path.write_text(content)
    times = PhaseTimes(path)
    assert times.seconds("build", "a") is None
    times.learn("a", {"build": 1.0})
    assert PhaseTimes(path).seconds("build", "a") == 1.0


def test_a_file_does_not_grow_without_end(tmp_path):
    path = tmp_path / "times.json"
    times = PhaseTimes(path)
    for number in range(60):
        times.learn(f"setting {number}", {"build": 1.0})
    assert len(json.loads(path.read_text())["seconds"]) == 40


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    (tmp_path / "file").write_text("")
    times = PhaseTimes(tmp_path / "file" / "times.json")
    times.learn("a", {"build": 1.0})
    assert times.seconds("build", "a") == 1.0


def test_programs_and_machines_have_files_of_their_own():
    paths = {
        phase_times(program, settings, machine)._path
        for program in ("a", "b")
        for settings in ({}, {"batch_size": 8})
        for machine in ("one", "other")
    }
    assert len(paths) == 8

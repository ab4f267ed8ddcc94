"""What else a machine does when a measurement begins."""

from __future__ import annotations

import os
import platform

import pytest

from workbench.experiments.measurement import machine_load as module
from workbench.experiments.measurement.machine_load import MachineLoad, machine_load, measuring


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def stat(monkeypatch, tmp_path, *moments):
    """Makes the kernel tell these ticks (user, idle) of core 0, one after the other."""
    told = iter(moments)

    class Stat:
        def read_text(self):
            user, idle = next(told)
            others = "cpu9 900 0 0 0 0 0 0 0\n"
            return f"cpu  9 9 9 9\ncpu0 {user} 0 0 {idle} 0 0 0 0 0 0\n{others}intr 1\n"

    monkeypatch.setattr(module, "_STAT", Stat())
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


def test_cores_that_others_use_are_said_before_anything_is_measured(monkeypatch, tmp_path):
    stat(monkeypatch, tmp_path, (100, 100), (175, 125))
    load = machine_load(0.0)
    assert (load.busy_cores, load.cores, load.is_quiet) == (0.75, 1, False)
    assert load.words == (
        "The machine is busy: 0.8 of 1 core in use by others; intervals will be wide."
    )
    assert load.past_words == (
        "The machine was busy when this began: 0.8 of 1 core in use by others."
    )


def test_a_quiet_machine_is_not_spoken_of(monkeypatch, tmp_path):
    stat(monkeypatch, tmp_path, (100, 100), (101, 199))
    load = machine_load(0.0)
    assert load.is_quiet and load.words == load.past_words == ""


def test_where_the_system_does_not_say_nothing_is_claimed(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_STAT", tmp_path / "missing")
    load = machine_load(0.0)
    assert load.busy_cores is None and load.is_quiet


def test_another_measurement_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_STAT", tmp_path / "missing")
    with measuring("dlrm"):
        load = machine_load(0.0)
        assert load.others == ("dlrm",) and not load.is_quiet
        assert "another run of Workbench, of 'dlrm'" in load.words
    assert machine_load(0.0).others == ()


def test_what_a_process_left_that_is_gone_is_removed(cache, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_STAT", tmp_path / "missing")
    left = cache / "workbench" / "measuring" / platform.node() / f"{os.getpid()}-1-0"
    left.parent.mkdir(parents=True)
    left.write_text("dlrm")
    assert machine_load(0.0).others == ()
    assert not left.exists()


def test_what_measures_on_another_host_of_the_same_home_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_STAT", tmp_path / "missing")
    with measuring("dlrm"), monkeypatch.context() as elsewhere:
        elsewhere.setattr(module.platform, "node", lambda: "other-host")
        # Its processes are not known there.
        elsewhere.setattr(module, "_began", lambda _: "")
        assert machine_load(0.0).others == ()
        elsewhere.undo()
        assert machine_load(0.0).others == ("dlrm",)


def test_a_measurement_goes_on_where_nothing_can_be_written(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with measuring("dlrm"):
        assert machine_load(0.0).others == ()


def test_words_of_several_cores():
    load = MachineLoad(busy_cores=1.26, cores=2, others=("a", "b"))
    assert load.words.startswith(
        "The machine is busy: 1.3 of 2 cores in use by others, another run"
    )

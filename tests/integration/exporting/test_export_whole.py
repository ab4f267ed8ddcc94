"""A folder appears whole or not at all, whatever happens meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import tensorflow as tf

import workbench as wb
from workbench.cli.main import main
from workbench.errors import OutputError
from workbench.exporting import phases
from workbench.exporting.session import write

v1 = tf.compat.v1
_BIG = """
import sys
import tensorflow as tf
import workbench as wb
v1 = tf.compat.v1
with tf.Graph().as_default(), v1.Session() as session:
    weight = v1.get_variable("weight", [int(sys.argv[2])], initializer=v1.ones_initializer())
    session.run(v1.global_variables_initializer())
    LIMIT
    print("ready", flush=True)
    wb.export(session, sys.argv[1], outputs={"sum": tf.reduce_sum(weight)})
"""
_LIMIT = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
"""


def session_of(size: int = 4) -> tuple[v1.Session, dict]:
    weight = v1.get_variable("weight", [size], initializer=v1.ones_initializer())
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return session, {"sum": tf.reduce_sum(weight)}


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("place", ["before", "after", "name"])
def test_a_fault_leaves_nothing(place, fault, tmp_path, monkeypatch):
    session, outputs = session_of()
    builder = v1.saved_model.Builder
    save = builder.save

    def fail(*arguments, **named):
        if place == "after":
            save(*arguments, **named)
        raise fault

    if place == "name":
        monkeypatch.setattr(os, "replace", fail)
    else:
        monkeypatch.setattr(write.v1.saved_model.Builder, "save", fail)
    expected = OutputError if isinstance(fault, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as failed:
        wb.export(session, tmp_path / "out", outputs=outputs)
    if expected is OutputError:
        assert (
            str(failed.value) == f"{tmp_path / 'out'}: cannot be written: No space left on device"
        )
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    wb.export(session, tmp_path / "out", outputs=outputs)


def test_a_full_disk_leaves_nothing(tmp_path):
    script = _BIG.replace("    LIMIT\n", _LIMIT)
    out = tmp_path / "out"
    ended = subprocess.run(
        [sys.executable, "-c", script, str(out), str(1 << 20)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode and "OutputError" in ended.stderr, ended.stderr[-2000:]
    assert f"{out}: cannot be written: " in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_leaves_nothing(tmp_path):
    script = _BIG.replace("    LIMIT\n", "")
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "out"), str(1 << 26)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    while not list(tmp_path.iterdir()) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors
    assert list(tmp_path.iterdir()) == []


def test_phases_are_said_once_it_takes_long(tmp_path, monkeypatch):
    monkeypatch.setattr(phases, "_QUIET_S", 0.0)
    session, outputs = session_of()
    said: list[str] = []
    wb.export(session, tmp_path / "out", outputs=outputs, progress=said.append)
    assert any(line.startswith("Export: writing 1 variable") for line in said)
    monkeypatch.setattr(phases, "_QUIET_S", 60.0)
    wb.export(session, tmp_path / "quick", outputs=outputs, progress=said.clear and said.append)
    assert len(said) == len(set(said))


def test_the_command(tmp_path, capsys):
    session, outputs = session_of()
    wb.export(session, tmp_path / "model", outputs=outputs)
    assert main(["export", str(tmp_path / "model"), str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("A SavedModel is code that may read and write files")
    assert f"Wrote {tmp_path / 'out'}: serving_default." in said
    again = ["export", str(tmp_path / "model"), str(tmp_path / "out")]
    assert main(again) == 2
    assert "the folder is not empty" in capsys.readouterr().err
    assert main([*again, "--version-number", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["wrote"] == [str(tmp_path / "out/2")]
    assert document["results"][0]["signatures"] == ["serving_default"]

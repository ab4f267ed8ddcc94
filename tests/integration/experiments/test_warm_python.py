"""A process that has imported TensorFlow, and its forks."""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from workbench.experiments.worker.warm_python import ForkedProcess, WarmPython, warm_python

HERE = __name__


def facts(where: str) -> None:
    """What a fork finds."""
    told = {
        "tensorflow": "tensorflow" in sys.modules,
        "variable": os.environ.get("MINE"),
        "folder": os.getcwd(),
        "drawn": [random.random(), float(np.random.random())],
        "leads": os.getsid(0) == os.getpid(),
        "path": sys.path,
    }
    print("said", flush=True)
    print("wrong", file=sys.stderr)
    Path(where).write_text(json.dumps(told))


def leaves(code: str, pipe: int) -> None:
    """Ends with an exit code after a word through a pipe."""
    os.write(pipe, b"word")
    os._exit(int(code))


def converts(where: str) -> None:
    """Has AutoGraph convert a function and writes a file of its own; ends without Python's exit."""
    import tensorflow as tf

    tf.function(lambda x: x + 1 if x > 0 else x).get_concrete_function(tf.TensorSpec([]))
    kept = Path(tempfile.mkstemp()[1])
    Path(where).write_text(f"{kept}\n{len(list(kept.parent.glob('*.py')))}")
    os._exit(0)


def sleeps() -> None:
    """Runs on."""
    time.sleep(60)


@pytest.fixture(scope="module")
def warm():
    warm = WarmPython()
    yield warm
    warm.close()


def runs(child: ForkedProcess) -> bool:
    """Waits until it is forked."""
    while not child.pid:
        assert child.poll() is None
        time.sleep(0.01)
    return psutil.pid_exists(child.pid)


def test_a_fork_has_what_its_caller_gave_it(warm, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend("/nowhere/of/mine")
    out, found = tmp_path / "out", []
    for number in range(2):
        with out.open("wb") as words:
            child = warm.fork(
                f"{HERE}:facts",
                [str(tmp_path / f"{number}.json")],
                env=os.environ | {"MINE": "é" * 300_000},
                cwd=str(tmp_path),
                stdout=words.fileno(),
                stderr=words.fileno(),
            )
            assert child.wait(60) == 0
        assert sorted(out.read_text().split()) == ["said", "wrong"]
        found.append(json.loads((tmp_path / f"{number}.json").read_text()))
    first, second = found
    assert first["tensorflow"] and first["leads"] and first["variable"] == "é" * 300_000
    assert first["folder"] == str(tmp_path) and "/nowhere/of/mine" in first["path"]
    assert first["drawn"] != second["drawn"]


def test_it_tells_the_exit_code_and_the_memory(warm):
    ours, theirs = os.pipe()
    child = warm.fork(f"{HERE}:leaves", ["7"], pass_fds=[theirs])
    os.close(theirs)
    assert os.read(ours, 9) == b"word" and os.read(ours, 9) == b""
    os.close(ours)
    assert child.wait(60) == 7 and child.poll() == 7
    assert 10**8 < child.peak_bytes <= warm.largest_child_bytes


def test_a_killed_one_and_one_that_is_waited_for_in_vain(warm):
    child = warm.fork(f"{HERE}:sleeps")
    assert runs(child)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.05)
    child.kill()
    assert child.wait(10) == -signal.SIGKILL and not psutil.pid_exists(child.pid)


def test_what_goes_with_its_process_is_dead():
    warm = WarmPython()
    asked = warm.fork(f"{HERE}:sleeps")
    warm.close()  # while it still imports
    assert asked.wait(10) == -signal.SIGKILL and not asked.pid and not warm.usable
    assert warm.fork(f"{HERE}:sleeps").wait(10) == -signal.SIGKILL


def test_generated_code_of_children_goes_with_it_and_files_of_users_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    warm, told = WarmPython(), tmp_path / "told"
    assert warm.fork(f"{HERE}:converts", [str(told)]).wait(60) == 0
    kept, generated = told.read_text().split()
    assert int(generated) > 0 and not list(tmp_path.glob("__autograph*"))
    warm.close()
    assert {str(each) for each in tmp_path.rglob("*") if each.is_file()} == {kept, str(told)}
    warm = WarmPython()
    (folder,) = set(tmp_path.iterdir()) - {told, Path(kept).parent}
    warm.close()
    assert not folder.exists()


def test_variables_that_tensorflow_reads_need_a_new_one(warm, monkeypatch):
    monkeypatch.setenv("MINE", "1")
    assert warm.usable
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
    assert not warm.usable
    monkeypatch.undo()
    assert warm.usable


def test_cores_and_limits_that_changed_need_a_new_one(warm):
    cores, limits = os.sched_getaffinity(0), resource.getrlimit(resource.RLIMIT_CORE)
    assert len(cores) > 1 and limits[0] != 1
    try:
        os.sched_setaffinity(0, {min(cores)})
        assert not warm.usable
        os.sched_setaffinity(0, cores)
        assert warm.usable
        resource.setrlimit(resource.RLIMIT_CORE, (1, limits[1]))
        assert not warm.usable
    finally:
        os.sched_setaffinity(0, cores)
        resource.setrlimit(resource.RLIMIT_CORE, limits)
    assert warm.usable


def test_it_is_kept_from_block_to_block_and_gone_after_ctrl_c():
    with warm_python() as first:
        pass
    with warm_python() as again:
        assert again is first
        child = again.fork(f"{HERE}:sleeps")
        assert runs(child)
        with pytest.raises(KeyboardInterrupt), warm_python():
            raise KeyboardInterrupt
        # another thread may still fork from it
        assert again.usable and child.poll() is None
    with pytest.raises(KeyboardInterrupt), warm_python():
        raise KeyboardInterrupt
    assert not first.usable and child.wait(10) == -signal.SIGKILL
    with warm_python() as new:
        assert new is not first and new.usable


def is_running(pid: int) -> bool:
    """Whether it runs; a zombie waits for a parent that is stopped."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


class TestLeftProcesses:
    """What a child leaves behind, such as the processes of a loader, ends with it."""

    def started(self, warm: WarmPython, then: str, told: Path) -> tuple[ForkedProcess, list[int]]:
        child = warm.fork("tests.builders.left_processes:starts_loaders", [str(told), then])
        deadline = time.monotonic() + 60
        while not told.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        pids = [int(line) for line in told.read_text().splitlines()]
        assert len(pids) == 3
        return child, pids

    def require_ended(self, pids: list[int]) -> None:
        deadline = time.monotonic() + 20
        while any(map(is_running, pids)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not [pid for pid in pids if is_running(pid)]

    def test_with_one_that_ends_well(self, warm, tmp_path):
        child, pids = self.started(warm, "ends", tmp_path / "pids")
        assert child.wait(60) == 0
        assert not [pid for pid in pids if psutil.pid_exists(pid)]

    def test_with_one_that_is_killed_and_nothing_of_another_one(self, warm, tmp_path):
        first, own = self.started(warm, "stays", tmp_path / "first")
        second, others = self.started(warm, "stays", tmp_path / "second")
        first.kill()
        assert first.wait(60) == -signal.SIGKILL
        self.require_ended(own[:2])
        assert all(map(is_running, others))
        second.kill()
        assert second.wait(60) == -signal.SIGKILL
        self.require_ended([*own, *others])

    @pytest.mark.slow
    def test_with_the_process_that_forks(self, tmp_path):
        warm = WarmPython()
        child, pids = self.started(warm, "stays", tmp_path / "pids")
        warm.close()
        assert child.wait(10) == -signal.SIGKILL
        self.require_ended([child.pid, *pids])

    @pytest.mark.slow
    def test_of_a_session_where_the_process_that_forks_is_killed(self, tmp_path):
        warm = WarmPython()
        child, pids = self.started(warm, "stays", tmp_path / "pids")
        warm._server.kill()
        assert child.wait(10) == -signal.SIGKILL
        self.require_ended([child.pid, *pids[:2]])
        os.kill(pids[2], signal.SIGKILL)

    @pytest.mark.slow
    def test_with_a_child_of_a_stopped_process_that_forks(self, tmp_path):
        warm = WarmPython()
        child, pids = self.started(warm, "stays", tmp_path / "pids")
        assert runs(child)
        warm._server.send_signal(signal.SIGSTOP)
        child.kill()
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.1)
        child.forget()
        self.require_ended(pids[:2])
        warm.close()
        self.require_ended([child.pid])
        os.kill(pids[2], signal.SIGKILL)

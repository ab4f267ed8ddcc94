"""Tasks of real local clusters are killed and started again: training goes on, and ends."""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.cluster_tasks import BATCH, PARAMETER_SERVER, Tasks, result, seen, tasks
from workbench.errors import NativeError, RunError
from workbench.experiments.cluster.local_cluster import run_local_cluster
from workbench.models.data.criteo import generate_criteo

WORKERS = ("worker 0", "worker 1")


def steps_of_last(home: Path, worker: int) -> int:
    """Steps of a worker's last session so far."""
    sessions = seen(home, worker)
    return len(sessions[-1]) // BATCH if sessions else 0


def require_own_batches(home: Path, examples: int) -> None:
    """Each session of a worker begins with its part's first number, and goes on in order."""
    for worker in range(2):
        part = list(range(worker, examples, 2))
        sessions = seen(home, worker)
        assert all(numbers == part[: len(numbers)] for numbers in sessions), sessions


def require_loadable(kept: Path) -> int:
    """The global step of the last checkpoint, all of which can be read."""
    reader = tf.train.load_checkpoint(str(kept))
    for name in reader.get_variable_to_shape_map():
        assert np.isfinite(reader.get_tensor(name)).all()
    return int(reader.get_tensor("global_step"))


def kill_in_training(cluster: Tasks, home: Path, name: str) -> None:
    """Kills a task while both workers train, and waits until both train in a later session."""
    steps = {worker: len(seen(home, worker)) for worker in range(2)}
    hit = range(2) if name == PARAMETER_SERVER else [WORKERS.index(name)]
    cluster.kill(name)
    cluster.until(lambda: all(len(seen(home, each)) > steps[each] for each in hit), 120)


@pytest.mark.parametrize(
    ("toggle", "sync"),
    [
        ("stage", False),
        *(
            pytest.param(toggle, sync, marks=pytest.mark.slow)
            for toggle in ("stage", "smart_stage")
            for sync in (False, True)
            if (toggle, sync) != ("stage", False)
        ),
    ],
)
def test_training_goes_on_when_a_server_and_a_worker_were_killed(
    tmp_path: Path, toggle: str, sync: bool
) -> None:
    examples, kept, enough = 100_000, tmp_path / "kept", tmp_path / "enough"
    given = {"examples": examples, "steps": 100_000, "wait_ms": 20, "checkpoint": str(kept)}
    given["until"] = str(enough)
    with tasks(tmp_path, program="counting", toggle=toggle, sync=sync, **given) as cluster:
        cluster.until(lambda: all(steps_of_last(tmp_path, each) > 8 for each in range(2)), 90)
        kill_in_training(cluster, tmp_path, PARAMETER_SERVER)
        kill_in_training(cluster, tmp_path, "worker 1")
        cluster.until(lambda: all(steps_of_last(tmp_path, each) > 8 for each in range(2)), 90)
        enough.touch()
        cluster.end(120)
    require_own_batches(tmp_path, examples)
    assert all(result(tmp_path, each)["ended"] for each in range(2))
    assert require_loadable(kept) >= 8


MISSING = (
    r"/job:ps/task:0 of the cluster has not loaded Workbench's library; "
    r"write wb.load_library\(\) in its program before tf.distribute.Server"
)


@pytest.mark.parametrize(
    "given",
    [
        {"program": "keyed"},  # It is where an EmbeddingVariable lies.
        pytest.param({"program": "dlrm", "toggle": "grouped"}, marks=pytest.mark.slow),
    ],
)
def test_a_server_without_the_library_is_named_with_the_line(
    tmp_path: Path, given: dict[str, str]
) -> None:
    generate_criteo(tmp_path / "clicks.tsv", rows=600)
    with (
        tasks(tmp_path, workers=1, steps=3, plain_ps=True, **given) as cluster,
        pytest.raises(AssertionError, match=MISSING),
    ):
        cluster.end(120)


def test_workers_of_a_server_that_needs_no_library_end(tmp_path: Path) -> None:
    given = {"program": "counting", "toggle": "stage", "steps": 100, "plain_ps": True}
    with tasks(tmp_path, workers=1, examples=16, **given) as cluster:
        cluster.until(lambda: (tmp_path / "worker 0.json").exists(), 120)
        server = tf.distribute.Server(
            {"ps": [cluster.address(PARAMETER_SERVER)], "asks": ["localhost:0"]}, job_name="asks"
        )
        with pytest.raises(NativeError, match=MISSING):
            wb.cluster.check_servers(server.target)
    assert result(tmp_path, 0)["steps"] == 4


def kill_at_random(cluster: Tasks, home: Path, *, most_wait_s: float) -> None:
    """Kills tasks 20 times once both workers train; then the file `enough` is there."""
    seed = int.from_bytes(os.urandom(4))
    print(f"seed {seed}")
    drawn = random.Random(seed)
    cluster.until(lambda: all(seen(home, each) for each in range(2)), 90)
    for _ in range(20):
        cluster.kill(drawn.choice([PARAMETER_SERVER, *WORKERS]))
        threading.Event().wait(drawn.uniform(0, most_wait_s))
    (home / "enough").touch()
    cluster.end(120)
    assert cluster.killed == 20


@pytest.mark.slow
@pytest.mark.parametrize("sync", [False, True])
def test_random_kills(tmp_path: Path, sync: bool) -> None:
    examples, kept = 100_000, tmp_path / "kept"
    given = {"examples": examples, "steps": 100_000, "wait_ms": 20, "checkpoint": str(kept)}
    given["until"] = str(tmp_path / "enough")
    with tasks(tmp_path, program="counting", toggle="stage", sync=sync, **given) as cluster:
        kill_at_random(cluster, tmp_path, most_wait_s=6)
    require_own_batches(tmp_path, examples)
    require_loadable(kept)


@pytest.mark.slow
@pytest.mark.parametrize("sync", [False, True])
def test_random_kills_with_packed_transfers(tmp_path: Path, sync: bool) -> None:
    generate_criteo(tmp_path / "clicks.tsv", rows=6000)
    given = {"steps": 100_000, "checkpoint": str(tmp_path / "kept")}
    given["until"] = str(tmp_path / "enough")
    with tasks(tmp_path, program="dlrm", toggle="grouped", sync=sync, **given) as cluster:
        kill_at_random(cluster, tmp_path, most_wait_s=10)
    require_loadable(tmp_path / "kept")


@pytest.mark.slow
def test_random_kills_with_updates_that_trail(tmp_path: Path) -> None:
    generate_criteo(tmp_path / "clicks.tsv", rows=6000)
    given = {"steps": 100_000, "checkpoint": str(tmp_path / "kept"), "stale_lookups": 2}
    given["until"] = str(tmp_path / "enough")
    with tasks(tmp_path, program="dlrm", toggle="smart_stage+grouped", **given) as cluster:
        kill_at_random(cluster, tmp_path, most_wait_s=10)
    require_loadable(tmp_path / "kept")


@pytest.mark.slow
def test_updates_that_trail_go_on_when_a_server_and_a_worker_were_killed(tmp_path: Path) -> None:
    generate_criteo(tmp_path / "clicks.tsv", rows=6000)
    given = {"steps": 100_000, "checkpoint": str(tmp_path / "kept"), "stale_lookups": 1}
    given["until"] = str(tmp_path / "enough")
    with tasks(tmp_path, program="dlrm", toggle="smart_stage+grouped", **given) as cluster:
        cluster.until(lambda: all(seen(tmp_path, each) for each in range(2)), 90)
        for name in (PARAMETER_SERVER, WORKERS[1]):
            kill_in_training(cluster, tmp_path, name)
        (tmp_path / "enough").touch()
        cluster.end(120)
    assert "trail the step" in cluster.log(WORKERS[1]).read_text()
    assert require_loadable(tmp_path / "kept") >= 0


@pytest.mark.parametrize("killed", [WORKERS[1], pytest.param(WORKERS[0], marks=pytest.mark.slow)])
@pytest.mark.slow
def test_a_worker_goes_on_after_a_kill_with_packed_transfers(tmp_path: Path, killed: str) -> None:
    generate_criteo(tmp_path / "clicks.tsv", rows=6000)
    given = {"steps": 100_000, "checkpoint": str(tmp_path / "kept")}
    given["until"] = str(tmp_path / "enough")
    with tasks(tmp_path, program="dlrm", toggle="grouped", **given) as cluster:
        cluster.until(lambda: all(seen(tmp_path, each) for each in range(2)), 90)
        kill_in_training(cluster, tmp_path, killed)
        (tmp_path / "enough").touch()
        cluster.end(120)
    said = cluster.log(killed).read_text()
    assert "Small tensors travel from task to task in few messages" in said
    begins = re.findall(f"^{killed} trains dlrm, process ([0-9]+), from global step", said, re.M)
    assert len(set(begins)) == 2


@pytest.mark.slow
def test_a_worker_that_was_done_does_not_train_again(tmp_path: Path) -> None:
    examples, enough = 100_000, tmp_path / "enough"
    given = {"examples": examples, "steps": 20, "until": str(enough)}
    with tasks(tmp_path, program="counting", steps_of_0=100_000, **given) as cluster:
        log = cluster.log("worker 1")
        cluster.until(lambda: "is done, and stays until all are" in log.read_text(), 90)
        cluster.kill("worker 1")
        again = "worker 1 was done when it was killed, and does not train again"
        cluster.until(lambda: again in log.read_text(), 90)
        enough.touch()
        cluster.end(120)
    assert result(tmp_path, 1)["steps"] == 0
    assert [len(each) for each in seen(tmp_path, 1)] == [20 * BATCH]


KILLED_ONCE = """
import os, pathlib, signal
began = pathlib.Path({!r}) / os.environ["TF_CONFIG"].replace("/", "")[-40:].strip('{{"}} ')
if '"worker", "index": 1' in os.environ["TF_CONFIG"] and not began.exists():
    began.touch()
    os.kill(os.getpid(), signal.SIGKILL)
print("trained")
"""


def test_a_killed_task_is_started_again_as_often_as_asked(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_ONCE.format(str(tmp_path))]
    said: list[str] = []
    lines = run_local_cluster(command, restarts=1, say=said.append)
    assert lines["worker 1"] == ["trained"]
    assert f"[worker 1] killed by signal {signal.SIGKILL}: starts again" in said


def test_a_killed_task_ends_all_without_restarts(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_ONCE.format(str(tmp_path))]
    with pytest.raises(RunError, match=re.escape("worker 1 ended with exit status -9")):
        run_local_cluster(command, say=lambda line: None)


def test_a_server_that_no_worker_tells_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.experiments.cluster.local_cluster._SERVERS_S", 0.2)
    script = (
        "import os, time\n"
        "if '\"type\": \"ps\"' in os.environ['TF_CONFIG']: time.sleep(60)\n"
        "print('trained')"
    )
    lines = run_local_cluster([sys.executable, "-c", script], timeout_s=30, say=lambda line: None)
    assert lines == {"ps 0": [], "worker 0": ["trained"], "worker 1": ["trained"]}


def test_a_worker_that_finds_no_server_left_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.experiments.cluster.local_cluster._WORKERS_S", 0.2)
    script = (
        "import os, time\n"
        'if \'"type": "worker", "index": 1\' in os.environ[\'TF_CONFIG\']: time.sleep(60)\n'
        "print('trained')"
    )
    said: list[str] = []
    lines = run_local_cluster([sys.executable, "-c", script], timeout_s=30, say=said.append)
    assert lines == {"ps 0": ["trained"], "worker 0": ["trained"], "worker 1": []}
    assert said[-1] == "[worker 1] is ended: it was started again when all were done"

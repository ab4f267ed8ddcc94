"""Real local clusters: a parameter server and two workers train a model, with each toggle."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import tensorflow as tf

from tests.builders.cluster_tasks import result, tasks
from workbench.cli.main import main
from workbench.errors import RunError
from workbench.experiments.cluster.local_cluster import run_local_cluster
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.data.dataset import row_dataset

# Of the sentence that a worker ends with.
ENDED = re.compile(r"^\[worker (\d)\] worker \d: (\d+) steps, [\d.]+ steps/s, loss ([\d.]+) at f")


def cluster_demo(home: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    given = ["--generate", "2000", "--batch-size", "64", "--steps", "30", "--timeout", "120s"]
    assert main(["cluster-demo", "dlrm", *given, "--out", str(home), *arguments]) == 0
    return capsys.readouterr().out


EACH = ("stage", "smart_stage", "fused_v1", "fused_v2", "grouped", "smart_stage+grouped")


# The quick run of the demo is in test_cluster_trace.py.
@pytest.mark.slow
@pytest.mark.parametrize("toggle", [None, *EACH])
def test_both_workers_train(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], toggle: str | None
) -> None:
    said = cluster_demo(tmp_path, capsys, *(["--toggle", toggle] if toggle else []))
    ended = {match[1]: match for match in map(ENDED.match, said.splitlines()) if match}
    assert sorted(ended) == ["0", "1"]
    assert all(int(match[2]) == 30 and float(match[3]) > 0 for match in ended.values())
    assert "[ps 0] ps 0 serves at localhost:" in said


@pytest.mark.slow
def test_lookups_of_a_table_on_another_task_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = cluster_demo(tmp_path, capsys, "--toggle", "auto_fused")
    assert "stays: its table is on another device than the ids" in said
    assert said.count("30 steps") == 2


def test_each_row_is_one_workers(tmp_path: Path) -> None:
    data = check_criteo(generate_criteo(tmp_path / "clicks.tsv", rows=101))
    rows = []
    for index in range(2):
        part = row_dataset(dataclasses.replace(data, shard=(index, 2)))
        row = tf.compat.v1.data.make_one_shot_iterator(part).get_next()
        with tf.compat.v1.Session() as session, contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                rows.append(session.run(row))
    assert sorted(rows) == sorted(data.path.read_bytes().splitlines())


@pytest.mark.slow
def test_a_checkpoint_is_where_the_next_cluster_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "kept"
    for _ in range(2):
        cluster_demo(tmp_path, capsys, "--checkpoint", str(kept))
    reader = tf.train.load_checkpoint(str(kept))
    steps = int(reader.get_tensor("global_step"))
    # The chief ends when its own steps are done, others may be on their way.
    assert 60 <= steps <= 120
    assert np.isfinite(reader.get_tensor(sorted(reader.get_variable_to_shape_map())[0])).all()


@pytest.mark.slow
def test_a_server_has_the_threads_of_the_toggle(tmp_path: Path) -> None:
    found = []
    for count in (2, 42):
        home = tmp_path / f"{count}"
        home.mkdir()
        toggle = f"grouped+intra_op_threads={count}+inter_op_threads={count}"
        with tasks(home, workers=1, program="threads", toggle=toggle, steps=20) as cluster:
            cluster.end(60)
        found.append(result(home, 0)["losses"][-1])
    # Forty more inside ops, forty more that run ops; how many serve the others is chance.
    assert found[1] - found[0] > 70


def test_a_worker_that_fails_ends_all(tmp_path: Path) -> None:
    script = (
        "import os, sys, time\n"
        "if '\"type\": \"worker\", \"index\": 1' in os.environ['TF_CONFIG']: sys.exit('no data')\n"
        "print(os.getpid(), flush=True)\n"
        "time.sleep(60)\n"
    )
    said: list[str] = []
    begin = time.monotonic()
    with pytest.raises(RunError, match="worker 1 ended with exit status 1:\nno data"):
        run_local_cluster([sys.executable, "-c", script], say=said.append)
    assert time.monotonic() - begin < 30
    for line in said:
        if line.split()[-1].isdecimal():
            with pytest.raises(ProcessLookupError):
                os.kill(int(line.split()[-1]), 0)


def test_one_that_takes_too_long_is_ended() -> None:
    with pytest.raises(RunError, match=r"took more than 1 s; still running: ps 0, worker 0"):
        run_local_cluster(
            [sys.executable, "-c", "import time; time.sleep(60)"], workers=1, timeout_s=1.0
        )


def require_ended(pids: list[int]) -> None:
    deadline = time.monotonic() + 20
    while any(map(psutil.pid_exists, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not [pid for pid in pids if psutil.pid_exists(pid)]


def test_tasks_end_with_the_process_that_started_them_though_it_is_killed() -> None:
    task = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    script = (
        "import sys\n"
        "from workbench.experiments.cluster.local_cluster import run_local_cluster\n"
        f"run_local_cluster([sys.executable, '-c', {task!r}], say=lambda x: print(x, flush=True))\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as cluster:
        pids = [int(cluster.stdout.readline().split()[-1]) for _ in range(3)]
        assert all(map(psutil.pid_exists, pids))
        cluster.kill()
    require_ended(pids)


def test_what_a_task_has_started_ends_with_it() -> None:
    # It holds the task's output, too.
    script = (
        "import subprocess, sys\n"
        "left = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(left.pid, flush=True)\n"
    )
    lines = run_local_cluster([sys.executable, "-c", script], timeout_s=30, say=lambda line: None)
    require_ended([int(line) for each in lines.values() for line in each])


def test_a_task_without_tf_config_says_what_to_set() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    done = subprocess.run(
        [sys.executable, "-m", "workbench", "cluster", "dlrm"],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 2
    assert "TF_CONFIG is not set, which says what task this process is" in done.stderr

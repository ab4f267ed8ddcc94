"""The commands as a user runs them, on a small click log."""

from __future__ import annotations

import signal
import subprocess
import sys

import psutil
import pytest

from tests.builders.processes import hear_ctrl_c
from workbench.core.trace import load_trace
from workbench.experiments.results import load_comparison
from workbench.experiments.worker import CANCELLED
from workbench.models.criteo import generate_criteo


def workbench(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workbench.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    home = tmp_path_factory.mktemp("cli")
    data = generate_criteo(home / "my_clicks.tsv", rows=2000)
    out = home / "results"
    done = workbench(
        *("compare", "dlrm", "--toggle", "stage", "--data", data, "--out", out),
        *("--batch-size", 64, "--budget", "3s", "--input-latency", "2"),
    )
    assert done.returncode == 0, done.stderr
    return out, done


def test_compare_prints_a_table_and_writes_its_results(compared):
    out, done = compared
    assert sorted(path.name for path in out.iterdir()) == [
        "comparison",
        "report.html",
        "trace.parquet",
    ]
    assert "steps/s" in done.stdout
    assert "bit-equal losses" in done.stdout
    assert "Starting 2 child processes" in done.stderr


def test_compare_saves_what_can_be_read_again(compared):
    out, _ = compared
    found = load_comparison(out / "comparison")
    assert [variant.label for variant in found.variants] == ["off", "stage"]
    assert all(check.passed for check in found.equivalence)
    assert found.bounds[0].name == "1 / max(T_input, T_compute)"
    assert "stage reaches" in found.bounds[0].detail
    assert found.command.startswith("workbench compare dlrm --toggle stage --data ")
    assert found.settings["input_latency_ms"] == 2.0
    trace = load_trace(out / "trace.parquet")
    assert "prefetch" in set(trace.tracks["kind"])


def test_report_writes_the_same_page_again(compared, tmp_path):
    out, _ = compared
    again = tmp_path / "again.html"
    done = workbench("report", out, "--out", again)
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == (out / "report.html").read_bytes()


def test_trace_writes_parquet_and_chrome_json(tmp_path):
    data = generate_criteo(tmp_path / "my_clicks.tsv", rows=500)
    done = workbench(
        *("trace", "dlrm", "--toggle", "stage", "--data", data, "--batch-size", 32),
        *("--steps", 5, "--out", tmp_path / "t.parquet", "--chrome", tmp_path / "t.json"),
    )
    assert done.returncode == 0, done.stderr
    assert len(load_trace(tmp_path / "t.parquet").steps()) == 5
    assert (tmp_path / "t.json").stat().st_size > 1000


def test_ctrl_c_keeps_nothing_and_leaves_no_process(tmp_path):
    data = generate_criteo(tmp_path / "my_clicks.tsv", rows=500)
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "workbench.cli", "compare", "dlrm"),
            *("--data", data, "--batch-size", "32", "--out", tmp_path / "results"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
    )
    while "Warming up" not in running.stderr.readline():
        assert running.poll() is None
    workers = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == 130
    assert errors.splitlines()[-1] == CANCELLED
    assert psutil.wait_procs(workers, timeout=10)[1] == []
    assert not (tmp_path / "results").exists()

"""The commands as a user runs them, on a small click log."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests.builders.command_line import run_command
from tests.builders.processes import hear_ctrl_c
from workbench.core.trace.trace import load_trace
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.regression.earlier import earlier_of, earlier_results
from workbench.experiments.worker.process import CANCELLED
from workbench.models.data.taobao import generate_sequences


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison in the poorest locale, where a file beyond ASCII has a name that is no text."""
    home = tmp_path_factory.mktemp("clé")
    data = generate_sequences(home / "my_clicks.tsv", rows=1000, negatives=False)
    out = home / "results"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "workbench", "compare", "din", "--toggle", "stage"),
            *("--data", data, "--out", out),
            *("--batch-size", "16", "--budget", "1s", "--input-latency", "2"),
        ],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
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
    # Which of the two comes nearer is not said by blocks this short.
    assert "off reaches" in found.bounds[0].detail
    assert found.command.startswith("workbench compare din --toggle stage --data ")
    assert found.settings["input_latency_ms"] == 2.0
    assert found.settings["data"] == str(out.parent / "my_clicks.tsv")
    trace = load_trace(out / "trace.parquet")
    assert "prefetch" in set(trace.tracks["kind"])


def test_the_report_tells_what_measures_it_again(compared):
    out, _ = compared
    (then,) = earlier_results(out / "report.html")
    assert then.configuration.origin.model == "din"
    # In that locale the name is bytes that are no text; they are the same in every other one.
    data = then.configuration.origin.options["data"]
    assert os.fsencode(data) == os.fsencode(out.parent / "my_clicks.tsv")
    assert then.configuration.origin.options["batch_size"] == 16
    assert [each.label() for each in then.configuration.settings] == ["off", "stage"]
    assert (then.configuration.budget_s, then.configuration.seed) == (1.0, 1)
    assert then == earlier_of(load_comparison(out / "comparison"))


def test_report_writes_the_same_page_again(compared, tmp_path):
    out, _ = compared
    again = tmp_path / "again.html"
    done = run_command("report", out, "--out", again)
    assert done.returncode == 0, done.stderr
    assert again.read_bytes() == (out / "report.html").read_bytes()


def test_trace_writes_parquet_and_chrome_json(tmp_path):
    data = generate_sequences(tmp_path / "my_clicks.tsv", rows=500, negatives=False)
    done = run_command(
        *("trace", "din", "--toggle", "stage", "--data", data, "--batch-size", 32),
        *("--steps", 5, "--out", tmp_path / "t.parquet", "--chrome", tmp_path / "t.json"),
    )
    assert done.returncode == 0, done.stderr
    assert len(load_trace(tmp_path / "t.parquet").steps()) == 5
    assert (tmp_path / "t.json").stat().st_size > 1000


@pytest.mark.slow
def test_predict_prints_every_setting_and_writes_a_page(tmp_path):
    data = generate_sequences(tmp_path / "my_clicks.tsv", rows=500, negatives=False)
    done = run_command(
        *("predict", "din", "--toggle", "stage", "--data", data, "--batch-size", 32),
        *("--steps", 5, "--out", tmp_path / "predicted.html"),
    )
    assert done.returncode == 0, done.stderr
    # Predicted or withheld: on a busy machine the simulation need not hold.
    assert "Simulated, the traced step takes" in done.stdout
    assert "Predicting 2 settings" in done.stderr
    assert (tmp_path / "predicted.html").read_text("utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("sent", "phase", "code"),
    [
        (signal.SIGINT, "Building", 130),
        pytest.param(signal.SIGINT, "Warming up", 130, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "Tracing", 143, marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, "Checking", -signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_an_end_from_outside_keeps_nothing_and_leaves_no_process(tmp_path, sent, phase, code):
    data = generate_sequences(tmp_path / "my_clicks.tsv", rows=500, negatives=False)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    running = subprocess.Popen(
        [
            *(sys.executable, "-m", "workbench", "compare", "din", "--toggle", "smart_stage"),
            *("--data", data, "--batch-size", "32", "--budget", "2s"),
            *("--out", tmp_path / "results"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    while phase not in running.stderr.readline():
        assert running.poll() is None
    workers = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(sent)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == code
    if sent != signal.SIGKILL:
        assert errors.splitlines()[-1] == CANCELLED
    assert psutil.wait_procs(workers, timeout=10)[1] == []
    assert not (tmp_path / "results").exists()
    assert list(temporary.iterdir()) == []


_INTERRUPTED_IN_A_CALLBACK = """
import os, signal, sys, weakref

class Interrupting:
    # Python drops what is raised in a callback, here the KeyboardInterrupt of a handler.
    def find_spec(self, name, *rest):
        if name == "workbench.experiments.comparison.compare":
            kept = type("Gone", (), {})()
            weakref.finalize(kept, os.kill, os.getpid(), signal.SIGINT)
            del kept

sys.meta_path.insert(0, Interrupting())
sys.argv[0] = "workbench"
from workbench.__main__ import main
sys.exit(main())
"""


def test_ctrl_c_while_the_command_loads_is_never_lost(tmp_path):
    data = generate_sequences(tmp_path / "my_clicks.tsv", rows=500, negatives=False)
    done = subprocess.run(
        [
            *(sys.executable, "-c", _INTERRUPTED_IN_A_CALLBACK, "compare", "din"),
            *("--data", data, "--batch-size", "32", "--budget", "1s", "--out", tmp_path / "out"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=hear_ctrl_c,
    )
    assert done.returncode == -signal.SIGINT
    assert (done.stdout, done.stderr) == ("", "")

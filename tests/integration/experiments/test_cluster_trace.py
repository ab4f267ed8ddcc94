"""Traces of real local clusters: clocks under an injected skew, sends and their recvs, files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.core.analysis.cluster_report import ClusterReport
from workbench.core.cluster.step_split import PARTS
from workbench.core.cluster.traffic import transfers_table

SKEW_NS = 50_000_000
# A clock that is ahead, put before the C library's in one process.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, now);
  if (!failed && clock == CLOCK_REALTIME && (now->tv_nsec += SKEW) >= 1000000000) {
    now->tv_nsec -= 1000000000;
    now->tv_sec += 1;
  }
  return failed;
}
int gettimeofday(struct timeval* now, void* zone) {
  struct timespec exact;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
"""


def shim(home: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler, which makes the skewed clock")
    source = home / "clock.c"
    source.write_text(f"#define SKEW {SKEW_NS}L\n{SHIM}")
    made = [compiler, "-shared", "-fPIC", "-o", str(home / "clock.so"), str(source), "-ldl"]
    subprocess.run(made, check=True)
    return home / "clock.so"


def traced_cluster(
    home: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str, skewed: bool = False
) -> None:
    """Runs the demo of a small DLRM, the ps with a skewed clock if asked to."""
    given = ["--generate", "2000", "--out", str(home), "--trace", str(home / "traces")]
    with monkeypatch.context() as patched:
        if skewed:
            python = home / "python"
            python.write_text(
                "#!/bin/sh\n"
                f'case "$TF_CONFIG" in *\'"type": "ps"\'*) export LD_PRELOAD={shim(home)};; esac\n'
                f'exec {sys.executable} "$@"\n'
            )
            python.chmod(0o755)
            patched.setattr(sys, "executable", str(python))
        assert main(["cluster-demo", "dlrm", *given, "--timeout", "240s", *arguments]) == 0


@pytest.mark.slow
def test_a_skewed_clock_is_recovered_and_every_send_has_its_recv(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--batch-size", "16", "--steps", "30", "--toggle", "smart_stage"]
    traced_cluster(tmp_path, monkeypatch, *given, skewed=True)
    printed = capsys.readouterr().out
    assert printed.count("] Wrote ") == 2 and printed.count(": 30 steps, ") == 2
    assert "[ps 0] ps 0 serves at localhost:" in printed
    report = printed[printed.index("Clocks, against that of ps 0") :]
    assert main(["cluster-trace", str(tmp_path / "traces")]) == 0
    assert report in capsys.readouterr().out
    assert "worker 0 → ps 0" in printed and "ps 0 → worker 1" in printed
    assert re.search(r"small tensors a step travel between worker [01]", printed)

    merged = wb.load_trace(tmp_path / "traces" / "cluster.parquet")
    for worker in ("worker 0", "worker 1"):
        ahead = merged.meta.clock_offset_ns[worker]
        assert abs(ahead + SKEW_NS) <= merged.meta.clock_error_ns[worker] < SKEW_NS / 2
    table = transfers_table(merged)
    assert (table["sent_ns"] >= 0).all() and (table["sent_ns"] <= table["end_ns"]).all()
    assert_sends_match(table)
    report = wb.cluster.cluster_report(merged)
    split = report.split
    assert (split[list(PARTS)].sum(axis=1) == split["dur_ns"]).all()
    assert (split["compute_ns"] > 0).all() and (split["ps_ns"] > 0).all()
    assert_chains_lead_over_tasks(report)
    # Steps are numbered by the global step, on a track of each worker.
    numbers = merged.steps().groupby("track")["number"]
    assert numbers.apply(lambda own: own.is_unique).all() and numbers.min().min() > 20


def assert_chains_lead_over_tasks(report: ClusterReport) -> None:
    """Each worker's steps are as long as a chain of ops on both tasks and of what travels."""
    assert [path.client for path in report.paths] == ["worker 0", "worker 1"]
    for path in report.paths:
        chain = path.by_task()
        assert chain["ns"].sum() == pytest.approx(path.step_ns)
        places = chain.groupby("kind")["place"].agg(set)
        assert {path.client, "ps 0"} <= places["op"]
        assert f"ps 0 → {path.client}" in places["travel"]


def assert_sends_match(table: pd.DataFrame) -> None:
    """What most steps send is the same; of the others a server lost records, or they were cut."""
    per_step = table.groupby(["client", "step"]).size()
    usual = per_step.median()
    assert usual > 100 and (per_step == usual).mean() > 0.5


@pytest.mark.slow
def test_the_skew_is_recovered_within_a_fifth_of_a_millisecond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced_cluster(tmp_path, monkeypatch, "--batch-size", "64", "--steps", "60", skewed=True)
    files = [tmp_path / "traces" / f"worker_{index}.parquet" for index in range(2)]
    merged = wb.cluster.merge_traces([wb.load_trace(file) for file in files])
    for ahead in merged.meta.clock_offset_ns.values():
        assert abs(ahead + SKEW_NS) <= 200_000


@pytest.mark.slow
@pytest.mark.timeout(600)  # five clusters
def test_what_travels_with_each_kind_of_lookup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """V2 sends no more bytes than stock lookups, grouped ones no more than V2 in few messages.

    So are those of an executor policy.
    """
    sent = {}
    for toggle in (None, "fused_v2", "grouped", "auto_fused", "inline_executor"):
        home = tmp_path / (toggle or "stock")
        home.mkdir()
        given = ["--batch-size", "64", "--steps", "60"]
        traced_cluster(home, monkeypatch, *(["--toggle", toggle] if toggle else []), *given)
        table = transfers_table(wb.load_trace(home / "traces" / "worker_0.parquet"))
        # Of each tensor the mean of the steps that have its record.
        bytes_ = table.groupby(["sender", "receiver", "tensor"])["bytes"].mean()
        assert not any(name.endswith("_table/read") for *_, name in bytes_.index)
        sent[toggle] = (bytes_.sum(), len(bytes_))
    assert sent[None][1] == sent["fused_v2"][1] > 100
    # Steps are of other batches of the same rows.
    assert sent["fused_v2"][0] <= 1.02 * sent[None][0]
    for packed in ("grouped", "auto_fused"):
        assert sent[packed][0] <= 1.02 * sent["fused_v2"][0]
        assert sent[packed][1] * 5 <= sent["fused_v2"][1]
    assert sent["inline_executor"][1] * 5 <= sent[None][1]


def test_a_directory_without_traces_says_what_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster-trace", str(tmp_path)]) == 2
    assert "has no worker_*.parquet; expected what workers save" in capsys.readouterr().err


def test_traces_of_another_run_are_not_mixed_with_new_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "worker_0.parquet").touch()
    assert main(["cluster-demo", "dlrm", "--trace", os.fspath(tmp_path)]) == 2
    assert "has traces of workers already" in capsys.readouterr().err

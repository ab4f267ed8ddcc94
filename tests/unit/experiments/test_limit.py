"""Limits of traces and comparisons; the peaks that are kept."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.builders.comparisons import comparison, variant
from tests.builders.limits import PEAKS, product_trace
from tests.builders.traces import unstaged_trace
from workbench.errors import DataError, OptionError, RunError, TraceError
from workbench.experiments.comparison import machine_peaks as module
from workbench.experiments.comparison import peak_probe
from workbench.experiments.comparison.environment import machine
from workbench.experiments.comparison.findings import findings
from workbench.experiments.comparison.limit import known_limit, limit
from workbench.experiments.measurement.machine_load import MachineLoad
from workbench.viz.comparison.view import compare_view


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache directory, and a machine that is measured at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    probes = []

    def probed():
        probes.append(1)
        return PEAKS

    monkeypatch.setattr(module, "_probed", probed)
    monkeypatch.setattr(module, "machine_load", lambda: MachineLoad(busy_cores=0.0, cores=2))
    return probes


def shaped_comparison(**changes):
    variants = (
        variant("stage", 72.8, 0.8, trace=product_trace()),
        variant("off", 39.8, 0.4, trace=product_trace()),
        variant("untraced", 40.0, 0.4),
        variant("no shapes", 40.0, 0.4, trace=unstaged_trace()),
    )
    return comparison(variants=variants, **changes)


def test_a_machine_is_measured_once(cache):
    for _ in range(2):
        assert limit(product_trace(), progress=False).peaks == PEAKS
    assert len(cache) == 1
    limit(product_trace(), again=True, progress=False)
    assert len(cache) == 2


def test_what_is_measured_is_said(cache):
    said = []
    limit(product_trace(), progress=said.append)
    assert said == ["Measuring what the machine can do, once (about 5 s)"]


def test_what_a_busy_machine_gives_is_kept_by_this_process_only(cache, monkeypatch):
    monkeypatch.setattr(module, "machine_load", lambda: MachineLoad(busy_cores=1.5, cores=2))
    said = []
    for _ in range(2):
        assert limit(product_trace(), progress=said.append).peaks == PEAKS
        assert len(cache) == 1 and not module._path().exists()
    assert len(said) == 1 and "kept by this process only" in said[0]
    limit(product_trace(), again=True, progress=False)
    assert len(cache) == 2 and not module._path().exists()
    assert module.known_peaks() == PEAKS


@pytest.mark.parametrize("text", ["", "{", '{"format": 2}', '{"format": 1}', "[]"])
def test_a_damaged_file_is_measured_again(cache, text):
    module.machine_peaks(progress=False)
    module._path().write_text(text)
    assert module.known_peaks() is None
    assert module.machine_peaks(progress=False) == PEAKS and len(cache) == 2


def test_where_nothing_can_be_kept(cache, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert module.machine_peaks(progress=False) == PEAKS


def test_a_probe_that_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module.sys, "executable", "/bin/false")
    with pytest.raises(RunError, match="peaks failed: exit code 1"):
        module.machine_peaks(progress=False)

    def too_long(*_, **__):
        raise subprocess.TimeoutExpired("probe", 1)

    monkeypatch.setattr(module.subprocess, "run", too_long)
    with pytest.raises(RunError, match="took more than"):
        module.machine_peaks(progress=False)


def test_the_probe_multiplies_by_the_kernels_of_this_processor(monkeypatch):
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        monkeypatch.setenv(name, "Haswell")
    given = {}

    def run(_, env, **__):
        given.update(env)
        return subprocess.CompletedProcess([], 0, stdout=json.dumps(PEAKS.to_json()))

    monkeypatch.setattr(module.subprocess, "run", run)
    assert module._probed() == PEAKS
    assert given["OPENBLAS_NUM_THREADS"] == "1"
    assert not {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"} & set(given)


def test_what_another_program_takes_is_no_part_of_a_peak(monkeypatch):
    now = iter(range(100))
    # Wall time goes on three times as fast as the thread's own.
    clocks = {"thread_time": lambda: next(now) * 0.01, "perf_counter": lambda: next(now) * 0.03}
    for name, clock in clocks.items():
        monkeypatch.setattr(peak_probe.time, name, clock)
    calls = []
    rate = peak_probe._round([(lambda: calls.append(1), 6.0)])
    # The thread's clock is read before the first call and behind the last one.
    assert rate == pytest.approx(6.0 * len(calls) / (0.01 * (len(calls) + 3)))


def test_of_a_comparison_those_with_shapes_count(cache):
    found = limit(shaped_comparison(), progress=False)
    assert [label for label, _ in found.variants] == ["off", "stage"]
    with pytest.raises(KeyError, match="no variant 'x' has a limit"):
        found["x"]


def test_what_has_no_limit_measures_nothing(cache):
    with pytest.raises(TraceError, match="shapes"):
        limit(unstaged_trace(), progress=False)
    with pytest.raises(DataError, match="no variant of the comparison"):
        limit(comparison(), progress=False)
    with pytest.raises(OptionError, match="limit got a str"):
        limit("trace.parquet", progress=False)
    assert not cache


def test_lines_beside_other_results_measure_nothing(cache):
    trace = product_trace()
    here = shaped_comparison(environment={**comparison().environment, "cpu": machine()["cpu"]})
    assert known_limit(trace) is None and findings(trace).limit is None
    assert not any("of these cores" in note for note in compare_view(here).notes)
    assert not cache
    module.machine_peaks(progress=False)
    assert known_limit(trace).floor_ns == findings(trace).limit.floor_ns == 1412
    assert [note.partition(":")[0] for note in compare_view(here).notes if "cores" in note] == [
        "Stage",
        "All off",
    ]


def test_a_trace_of_another_machine_has_no_line(cache):
    module.machine_peaks(progress=False)
    assert known_limit(product_trace(cores=8)) is None
    assert known_limit(product_trace(), shaped_comparison()) is None
    assert known_limit(unstaged_trace()) is None

"""DLRM, a row a step, on a parameter server and two workers: each task a process of its own."""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.bench_executor import ratio
from workbench.errors import RunError
from workbench.experiments.cluster.local_cluster import run_local_cluster
from workbench.models.data.criteo import generate_criteo

STEPS = 600
HEADER = ("all tasks", "rounds", "steps/s of both workers", "of stock", "of packed")
# A step of stock is 131 messages, a packed one 12; a policy packs unless told not to.
_STOCK, _PACKED = "stock", "packed"
_WAYS: dict[str, tuple[str, ...]] = {
    _STOCK: (),
    _PACKED: ("--pack-transfers",),
    "inline, not packed": ("--toggle", "inline_executor", "--no-pack-transfers"),
    "inline": ("--toggle", "inline_executor"),
}
_RATE = re.compile(r"([\d,.]+) steps/s")
_Rates = Mapping[str, Sequence[float]]


def rows(rounds: int, budget_s: float) -> list[list[str]]:
    """A row for each way to run the cluster.

    The ways take turns, and each says its rate when it has ended. A round begins only where the
    longest one before would fit into what is left of the budget.
    """
    rates: dict[str, list[float]] = {name: [] for name in _WAYS}
    ends = time.monotonic() + budget_s
    longest = 0.0
    with tempfile.TemporaryDirectory() as home:
        data = Path(home) / "clicks.tsv"
        generate_criteo(data, rows=4 * STEPS)
        for number in range(rounds):
            began = time.monotonic()
            if began + longest > ends:
                print(f"The budget of {budget_s:.0f} s is for {number} rounds", flush=True)
                break
            try:
                measured = _round(data, number, ends)
            except RunError as error:
                print(f"Round {number + 1} does not count: {error}", flush=True)
                break
            for name, rate in measured.items():
                rates[name].append(rate)
            longest = max(longest, time.monotonic() - began)
    return [_row(name, rates) for name in _WAYS]


def _round(data: Path, number: int, ends: float) -> dict[str, float]:
    measured = {}
    for name in _WAYS if number % 2 else reversed(_WAYS):
        began = time.monotonic()
        measured[name] = _rate(data, _WAYS[name], max(ends - began, 1.0))
        took = time.monotonic() - began
        print(f"round {number + 1}, {name}: {measured[name]:.0f} steps/s, {took:.0f} s", flush=True)
    return measured


def _rate(data: Path, options: Sequence[str], timeout_s: float) -> float:
    """Steps a second of both workers.

    Raises:
      RunError: a task failed, did not say its rate, or the time was up.
    """
    command = [sys.executable, "-m", "workbench", "cluster", "dlrm", "--data", str(data)]
    command += ["--batch-size", "1", "--steps", str(STEPS), *options]
    said = run_local_cluster(command, timeout_s=timeout_s, say=lambda line: None)
    found = [_RATE.search(line) for lines in said.values() for line in lines]
    rates = [float(each[1].replace(",", "")) for each in found if each]
    if len(rates) != 2:
        raise RunError(f"{len(rates)} of 2 workers said how fast they were")
    return sum(rates)


def _row(name: str, rates: _Rates) -> list[str]:
    own = rates[name]
    if not own:
        return [name, "0", "–", "–", "–"]
    to_both = (ratio(rates, name, other) for other in (_STOCK, _PACKED))
    return [name, str(len(own)), f"{statistics.median(own):.0f}", *to_both]

"""DLRM, a row a step, on a parameter server and two workers: each task a process of its own."""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from workbench.errors import RunError
from workbench.experiments.cluster.local_cluster import run_local_cluster
from workbench.models.data.criteo import generate_criteo

STEPS = 600
HEADER = ("executor of all tasks", "rounds", "steps/s of both workers", "of stock")
EXECUTORS = {"stock": None, "inline": "inline_executor"}
_RATE = re.compile(r"([\d,.]+) steps/s")


def rows(rounds: int, budget_s: float) -> list[list[str]]:
    """A row for each executor.

    Clusters of them take turns, and each says its rate when it has ended. A round begins only where
    the longest one before would fit into what is left of the budget.
    """
    rates: dict[str, list[float]] = {name: [] for name in EXECUTORS}
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
    return [_row(name, rates) for name in EXECUTORS]


def _round(data: Path, number: int, ends: float) -> dict[str, float]:
    measured = {}
    for name in EXECUTORS if number % 2 else reversed(EXECUTORS):
        began = time.monotonic()
        measured[name] = _rate(data, EXECUTORS[name], max(ends - began, 1.0))
        took = time.monotonic() - began
        print(f"round {number + 1}, {name}: {measured[name]:.0f} steps/s, {took:.0f} s", flush=True)
    return measured


def _rate(data: Path, toggle: str | None, timeout_s: float) -> float:
    """Steps a second of both workers.

    Raises:
      RunError: a task failed, did not say its rate, or the time was up.
    """
    command = [sys.executable, "-m", "workbench", "cluster", "dlrm", "--data", str(data)]
    command += ["--batch-size", "1", "--steps", str(STEPS)]
    command += ["--toggle", toggle] if toggle else []
    said = run_local_cluster(command, timeout_s=timeout_s, say=lambda line: None)
    found = [_RATE.search(line) for lines in said.values() for line in lines]
    rates = [float(each[1].replace(",", "")) for each in found if each]
    if len(rates) != 2:
        raise RunError(f"{len(rates)} of 2 workers said how fast they were")
    return sum(rates)


def _row(name: str, rates: Mapping[str, Sequence[float]]) -> list[str]:
    own = rates[name]
    if not own:
        return [name, "0", "–", "–"]
    ratios = [a / b for a, b in zip(own, rates["stock"], strict=True)]
    ratio = f"{statistics.median(ratios):.2f}"
    if len(ratios) > 1:
        low, _, high = statistics.quantiles(ratios, n=4)
        ratio += f" ({low:.2f}–{high:.2f})"
    return [name, str(len(own)), f"{statistics.median(own):.0f}", ratio]

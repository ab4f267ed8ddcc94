"""DLRM, a row a step, on a parameter server and two workers: each task a process of its own."""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
from pathlib import Path

from workbench.experiments.cluster.local_cluster import run_local_cluster
from workbench.models.data.criteo import generate_criteo

STEPS = 1500
HEADER = ("executor of all tasks", "steps/s of both workers", "of stock")
EXECUTORS = {"stock": None, "inline": "inline_executor", "cost model": "cost_model_executor"}
_RATE = re.compile(r"([\d,.]+) steps/s")


def rows(rounds: int) -> tuple[tuple[str, ...], list[list[str]]]:
    """The header and a row for each executor; clusters of them take turns."""
    rates: dict[str, list[float]] = {name: [] for name in EXECUTORS}
    with tempfile.TemporaryDirectory() as home:
        data = Path(home) / "clicks.tsv"
        generate_criteo(data, rows=4 * STEPS)
        for number in range(rounds):
            for name in EXECUTORS if number % 2 else reversed(EXECUTORS):
                rates[name].append(_rate(data, EXECUTORS[name]))
    return HEADER, [_row(name, rates) for name in EXECUTORS]


def _rate(data: Path, toggle: str | None) -> float:
    """Steps a second of both workers."""
    command = [sys.executable, "-m", "workbench", "cluster", "dlrm", "--data", str(data)]
    command += [
        "--batch-size",
        "1",
        "--steps",
        str(STEPS),
        *(["--toggle", toggle] if toggle else []),
    ]
    said = run_local_cluster(command, say=lambda line: None)
    found = [_RATE.search(line) for lines in said.values() for line in lines]
    return sum(float(each[1].replace(",", "")) for each in found if each)


def _row(name: str, rates: dict[str, list[float]]) -> list[str]:
    ratios = [a / b for a, b in zip(rates[name], rates["stock"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return [name, f"{statistics.median(rates[name]):.0f}", f"{middle:.2f} ({low:.2f}–{high:.2f})"]

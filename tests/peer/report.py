"""The results of a folder of runs: a line a file, totals, JSON, and the table of the docs.

python -m tests.peer.report build/peer/results
"""

from __future__ import annotations

import collections
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.peer.comparison import Difference, compare, listed_texts
from tests.peer.modes import MODEL_MODES, STOCK
from tests.peer.records import FORMAT, FileRun, load_run

# Of an error's text, which may hold a whole graph.
_SHOWN = 300
_COUNTED = (
    *("sessions", "on_executor", "planned", "fused", "parts", "stayed_stock"),
    *("models", "changed_models"),
)


def line(run: FileRun, difference: Difference | None = None) -> str:
    """One run in a line; what fails here alone below it."""
    count = run.counts.get
    parts = [f"{run.mode:13} {run.file}: {run.ran} tests in {run.seconds:.0f} s"]
    if count("models"):
        parts.append(f"{count('models')} models, {count('changed_models')} changed")
    if count("sessions"):
        parts.append(
            f"{count('sessions')} sessions, {count('on_executor', 0)} on our executor, "
            f"{count('planned', 0)} planned, {count('fused', 0)} fused"
        )
    if count("parts") or count("stayed_stock"):
        parts.append(f"{count('parts')} parts, {count('stayed_stock', 0)} lookups stock")
    if run.ended:
        parts.append(run.ended)
    if difference is None:
        parts.append(f"{sum(o == 'failed' for o in run.outcomes.values())} fail")
        return "; ".join(parts)
    below = [f"\n    NEW {test}: {error[:_SHOWN]}" for test, error in difference.new.items()]
    below += [f"\n    listed {test}: {reason}" for test, reason in difference.listed.items()]
    below += [f"\n    PLAN ERROR {n}x {error}" for error, n in count("plan_errors", {}).items()]
    if difference.unreached:
        below.append(f"\n    not reached: {len(difference.unreached)} tests that stock ran")
    return "; ".join([*parts, f"{len(difference.new)} new"]) + "".join(below)


def totals(folder: Path) -> dict[str, dict[str, Any]]:
    """By mode, the sums over all files that were run in it and in stock."""
    listed, found = listed_texts(), {}
    for mode in _modes(folder):
        total: collections.Counter[str] = collections.Counter()
        new, known = [], []
        for run, stock in _runs(folder, mode):
            total.update(files=1, tests=run.ran, seconds=round(run.seconds))
            total.update({name: run.counts.get(name, 0) for name in _COUNTED})
            total["plan_errors"] += sum(run.counts.get("plan_errors", {}).values())
            total["stopped"] += bool(run.ended)
            if stock is not None and mode != STOCK:
                difference = compare(stock, run, listed)
                new += [f"{run.file} {test}: {e[:_SHOWN]}" for test, e in difference.new.items()]
                known += [f"{run.file} {test}: {why}" for test, why in difference.listed.items()]
                total["unreached"] += len(difference.unreached)
        found[mode] = {**total, "new": new, "listed": known}
    return found


def save(folder: Path) -> Path:
    """Writes the totals as JSON, and says where."""
    path = folder / "results.json"
    path.write_text(json.dumps({"format": FORMAT, "modes": totals(folder)}, indent=1))
    return path


def table(found: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """The totals as a Markdown table."""
    yield "| mode | files | tests run | fail here alone | listed texts | sessions or models |"
    yield "|---|---|---|---|---|---|"
    for mode, total in found.items():
        if mode == STOCK:
            continue
        if mode in MODEL_MODES:
            ran = f"{total['models']} models, {total['changed_models']} changed"
        else:
            ran = (
                f"{total['sessions']} sessions, {total['on_executor']} on the executor, "
                f"{total['fused']} really fused with {total['parts']} parts"
            )
        failed = f"{len(total['new'])} | {len(total['listed'])}"
        yield f"| {mode} | {total['files']} | {total['tests']:,} | {failed} | {ran} |"


def run_path(folder: Path, mode: str, file: str) -> Path:
    """Where the run of a file in a mode is kept."""
    return folder / mode / (file.replace("/", ".") + ".json")


def _modes(folder: Path) -> list[str]:
    found = sorted(path.name for path in folder.iterdir() if any(path.glob("*.json")))
    return sorted(found, key=lambda mode: mode != STOCK)


def _runs(folder: Path, mode: str) -> Iterable[tuple[FileRun, FileRun | None]]:
    for path in sorted((folder / mode).glob("*.json")):
        run = load_run(path)
        if run is not None:
            yield run, load_run(run_path(folder, STOCK, run.file))


if __name__ == "__main__":
    print("\n".join(table(totals(Path(sys.argv[1])))))

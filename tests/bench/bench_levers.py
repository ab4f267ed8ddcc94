"""TensorFlow's own toggles on the six models: how many times as fast as all off each one trains.

Each model is measured with every choice in turn, each in a process of its own, one block after the
other. Prints a row for each model: the ratio of each choice with its 95 % interval, as Markdown.

    python -m tests.bench.bench_levers [--model dlrm] [--toggle grappler=off] [--budget 60]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import workbench as wb
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.errors import WorkbenchError
from workbench.experiments.program.variant import variants_of
from workbench.models import MODELS

ROWS = 50_000
TOGGLES = (
    "tf_data=prefetch",
    "tf_data=private_threads",
    "xla=clusters",
    "precision=bfloat16",
    "onednn=off",
    "grappler=off",
    "caller_thread=on",
    "freed_memory=given_back",
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=tuple(MODELS), help="only this one")
    parser.add_argument("--toggle", action="append", help="only this choice")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each model")
    chosen = parser.parse_args(arguments)
    toggles = chosen.toggle or list(TOGGLES)
    print("| model | step, all off |", " | ".join(f"`{each}`" for each in toggles), "|")
    print("|---|---|" + "---|" * len(toggles))
    for name in chosen.model or MODELS:
        print(row(name, toggles, chosen.budget), flush=True)


def row(name: str, toggles: Sequence[str], budget_s: float) -> str:
    """The row of a model."""
    model = MODELS[name]()
    with tempfile.TemporaryDirectory() as home:
        data = model.generated(Path(home), rows=ROWS, seed=1)
        program = model.program(model.options(data=data))
        try:
            comparison = wb.compare(
                program,
                toggles,
                budget_s=budget_s,
                trace_steps=0,
                equivalence_steps=0,
                progress=False,
            )
        except WorkbenchError as error:
            return f"| {name} | {error} |"
    cells = [cell(comparison, toggle) for toggle in toggles]
    step_ms = comparison.variants[0].step_ms_median
    return f"| {name} | {step_ms:.1f} ms | {' | '.join(cells)} |"


def cell(comparison: wb.Comparison, toggle: str) -> str:
    """A choice's ratio with its interval, or why it has none."""
    (_, variant) = variants_of([toggle], StageOptions(), SmartStageOptions())
    ratio = comparison.ratio_of(variant.label)
    if ratio is None:
        return comparison.failed.get(variant.label, "not measured")
    return f"{ratio.ratio:.2f} ({ratio.low:.2f}–{ratio.high:.2f})"


if __name__ == "__main__":
    main()

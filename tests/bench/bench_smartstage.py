"""SmartStage against un-staged and hand-staged, over models and kinds of input; its own prediction.

Every model runs on a local file and on an input that each batch waits for as long as the step
computes: un-staged, with the user's own stage, with a smart stage, with both. All with as many
producers as `--threads` allows. Prints the table with 95 % intervals, and whether it reaches the
goals: 97 % of its own predicted bound, 0.98 of the better of un-staged and hand-staged, a predicted
ratio within 10 % of the measured one. Beside it what DeepRec publishes for its own SmartStage.

    python -m tests.bench.bench_smartstage [--budget 150] [--rows 100000] [--threads 2] [--gpu]
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison.compare import compare
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.blocks import step_time_ms
from workbench.experiments.measurement.statistics import ratio_interval
from workbench.experiments.program.program import Program
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.zoo.options import DlrmOptions
from workbench.models.zoo.programs import dlrm_program

TOGGLES = ("stage", "smart_stage", "stage+smart_stage")
OFF, STAGE, SMART, BOTH = "off", "stage", "smart stage", "stage + smart stage"
GOAL_OF_BOUND, GOAL_OF_BEST, GOAL_OF_RATIO = 0.97, 0.98, 0.10
# DeepRec, docs/docs_en/Smart-Stage.md, global steps/s: without, do_smart_stage (DLRM also on a CPU
# of 32 threads), do_smart_stage_gpu; on an A100 and 64 cores.
PUBLISHED = {
    "DIEN": (17.1673, 16.918, 17.2557),
    "DIN": (137.584, 132.619, 165.069),
    "DLRM": (91.6982, 67.735, 188.105),
    "DSSM": (92.4544, 83.7194, 101.352),
    "DeepFM": (74.7011, 62.1227, 93.0858),
}
PUBLISHED_CPU = {"DLRM": (201.0, 212.0)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One model on one kind of input."""

    model: str
    input_kind: str
    found: Comparison

    def rates(self, label: str) -> tuple[float, ...]:
        (variant,) = [v for v in self.found.variants if v.label == label]
        return variant.block_steps_per_s


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=150.0, help="seconds for each row")
    parser.add_argument("--rows", type=int, default=100_000, help="rows of the click log")
    parser.add_argument("--threads", type=int, default=2, help="producers that a stage may have")
    parser.add_argument("--capacity", type=int, default=2, help="items in a buffer")
    parser.add_argument("--input", choices=("local", "latency"), help="only this kind of input")
    parser.add_argument(
        "--gpu", action="store_true", help="as do_smart_stage_gpu, on a machine with a GPU"
    )
    chosen = parser.parse_args(arguments)
    path = generate_criteo(Path("data/bench_clicks.tsv"), rows=chosen.rows, seed=1)
    rows = []
    for model, options in (("DLRM", DlrmOptions(data=check_criteo(path))),):
        plain = dlrm_program(options)
        wait = step_time_ms(plain, "build_compute")
        slow = dlrm_program(dataclasses.replace(options, input_latency_ms=wait))
        for kind, program in (("local file", plain), (f"waits {wait:.0f} ms", slow)):
            if chosen.input and not kind.startswith(chosen.input[:4].replace("late", "wait")):
                continue
            rows.append(Row(model=model, input_kind=kind, found=measured(program, chosen)))
            show(rows[-1])
    print("\nDeepRec's own figures, global steps/s (ratio to its un-staged run)")
    for model, (off, smart, gpu) in PUBLISHED.items():
        print(
            f"  {model:<7} A100: do_smart_stage {smart / off:.2f}×, _gpu {gpu / off:.2f}×", end=""
        )
        cpu = PUBLISHED_CPU.get(model)
        print(f"; CPU: {cpu[1] / cpu[0]:.2f}×" if cpu else "")


def measured(program: Program, chosen: argparse.Namespace) -> Comparison:
    """All four variants in one interleaved run."""
    stage = StageOptions(num_threads=chosen.threads, capacity=chosen.capacity)
    smart = SmartStageOptions(
        reorder=chosen.threads > 1, capacity=chosen.capacity, on_cpu=chosen.gpu
    )
    return compare(
        program,
        TOGGLES,
        stage=stage,
        smart_stage=smart,
        budget_s=chosen.budget,
        equivalence_steps=0,
        trace_steps=30,
    )


def show(row: Row) -> None:
    """The row's table and its three goals."""
    print(f"\n{row.model}, {row.input_kind}")
    by_label = {ratio.label: ratio for ratio in row.found.ratios}
    for variant in row.found.variants:
        ratio = by_label.get(variant.label)
        line = f"  {variant.label:<20} {variant.steps_per_s:7.2f} steps/s"
        if ratio:
            line += f"  {ratio.ratio:5.2f}× ({ratio.low:.2f}–{ratio.high:.2f})"
            line += f"  predicted {ratio.predicted:.2f}×" if ratio.predicted else ""
        print(line)
        for note in _plan_lines(variant):
            print(f"      {note}")
    for label in (SMART, BOTH):
        _goals(row, label)


def _plan_lines(variant) -> list[str]:
    if variant.plan is None:
        return []
    edits = [f"{edit.name}: {edit.reason}" for edit in variant.plan.edits]
    return edits + [
        f"{'→' if p.chosen else ' '} {p.label}: {p.step_ms:.2f} ms, at least {p.bound_ms:.2f} ms "
        f"({p.limited_by})"
        for p in variant.plan.predictions
    ]


def _goals(row: Row, label: str) -> None:
    (variant,) = [v for v in row.found.variants if v.label == label]
    best = max((OFF, STAGE), key=lambda other: sum(row.rates(other)))
    of_best = ratio_interval(row.rates(label), row.rates(best), 0)
    print(
        f"  {label}: {of_best.value:.3f} ({of_best.low:.3f}–{of_best.high:.3f}) of {best!r}, "
        f"goal {GOAL_OF_BEST}: {_said(of_best.value >= GOAL_OF_BEST)}"
    )
    (ratio,) = [r for r in row.found.ratios if r.label == label]
    if ratio.predicted:
        off_by = ratio.predicted / ratio.ratio - 1
        print(f"    prediction off by {off_by:+.1%}: {_said(abs(off_by) <= GOAL_OF_RATIO)}")
    bounds = [p.bound_ms for p in variant.plan.predictions if p.chosen] if variant.plan else []
    for bound_ms in bounds:
        share = variant.steps_per_s * bound_ms / 1000
        print(f"    {share:.1%} of its predicted bound: {_said(share >= GOAL_OF_BOUND)}")


def _said(reached: bool) -> str:
    return "reached" if reached else "MISSED"


if __name__ == "__main__":
    main()

"""Steps of models on a GPU: as they are, smart-staged, lookups fused by kernels for it, and both.

All settings of a model run the same batches in interleaved blocks, in processes that have loaded
the kernels. Prints, as Markdown, a row for each setting: steps/s, their ratio to the unchanged
model with its interval, and whether losses are equal within rounding.

    python -m tests.bench.bench_gpu [--model dlrm] [--batch-size 512] [--budget 60]
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path

import workbench as wb
from tests.bench.bench_predict import program_of
from tests.bench.model_jobs import MODELS
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison.compare import compare
from workbench.experiments.program.program import Build, Built, Program
from workbench.experiments.program.toggles import optimizations_of

TOGGLES = (
    "smart_stage",
    "grouped",
    "auto_fused",
    "smart_stage+grouped",
    "smart_stage+auto_fused",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a table for each model; 1 where TensorFlow sees no GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=MODELS, help="DLRM by default")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of a model")
    parser.add_argument("--threads", type=int, default=4, help="of a stage")
    parser.add_argument("--capacity", type=int, default=4, help="items in its buffer")
    chosen = parser.parse_args(arguments)
    if not _gpus():
        print("TensorFlow sees no GPU here: nothing is measured")
        return 1
    smart = SmartStageOptions(
        num_threads=chosen.threads, capacity=chosen.capacity, reorder=True, on_cpu=True
    )
    own = StageOptions(num_threads=chosen.threads, capacity=chosen.capacity)
    settings = [
        dataclasses.replace(optimizations_of(toggle, own, smart), batch_size=chosen.batch_size)
        for toggle in TOGGLES
    ]
    print("| model | setting | steps/s | ratio | losses |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as home:
        for model in chosen.model or ("dlrm",):
            program = with_kernels(program_of(model, Path(home) / "models"))
            _show(model, program, settings, chosen.batch_size, chosen.budget)
    return 0


def with_kernels(program: Program) -> Program:
    """A program whose processes load the kernels of lookups for GPUs."""
    parts = {
        field.name: _WithKernels(part)
        for field in dataclasses.fields(program)
        if field.name.startswith("build") and (part := getattr(program, field.name))
    }
    return dataclasses.replace(program, **parts)


@dataclasses.dataclass(frozen=True)
class _WithKernels:
    build: Build

    def __call__(self, optimizations: Optimizations) -> Built:
        wb.load_gpu_kernels()
        return self.build(optimizations)


def _show(
    model: str, program: Program, settings: list[Optimizations], batch_size: int, budget: float
) -> None:
    found = compare(
        program,
        settings,
        baseline=Optimizations(batch_size=batch_size),
        budget_s=budget,
        trace_steps=0,
        equivalence_steps=10,
    )
    plain, *others = found.variants
    print(f"| {model} | {plain.label} | {plain.steps_per_s:.1f} | | |")
    for variant, ratio in zip(others, found.ratios, strict=True):
        wrong = [each.detail for each in found.checks_of(variant.label) if not each.passed]
        losses = "; ".join(wrong) or "equal"
        print(
            f"| {model} | {variant.label} | {variant.steps_per_s:.1f} | "
            f"{ratio.ratio:.2f} ({ratio.low:.2f}–{ratio.high:.2f}) | {losses} |",
            flush=True,
        )


def _gpus() -> list[object]:
    import tensorflow as tf

    return list(tf.config.list_physical_devices("GPU"))


if __name__ == "__main__":
    raise SystemExit(main())

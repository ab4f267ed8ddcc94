"""The Comparison that interleaved runs add up to: rates, ratios, checks, bounds, settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.experiments.comparison.environment import environment
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.comparison.running.interleaved_run import (
    InterleavedRun,
    samples_of_a_step,
)
from workbench.experiments.measurement.bounds import bounds_of
from workbench.experiments.measurement.evidence import paired_ratio, rate_interval
from workbench.experiments.measurement.statistics import verdict
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.variant import LEARNING, Variant


def summary(
    program: AnyProgram,
    runs: Sequence[InterleavedRun],
    *,
    seed: int,
    command: str,
    settings: Mapping[str, Any],
    notes: Sequence[str] = (),
) -> Comparison:
    """The comparison of all variants that were run.

    Args:
      program: what was run.
      runs: each with the baseline; more than one where not all variants ran in the same rounds.
      seed: of the bootstrap.
      command: what reproduces it.
      settings: of the measurement, beside those that are known here.
      notes: what a reader should know of the choice of variants, a sentence each.
    """
    first = runs[0]
    variants = _measured_variants(runs, seed)
    failed = {label: words for run in runs for label, words in run.failed.items()}
    labels = [variant.label for variant in variants]
    variants[0] = dataclasses.replace(
        variants[0],
        notes=(
            *variants[0].notes,
            *notes,
            *_stop_notes(first),
            *_failure_notes(failed, labels),
        ),
    )
    return Comparison(
        program=program.name,
        variants=tuple(variants),
        baseline=first.variants[0].label,
        ratios=tuple(
            _ratio(program, run, variant, seed) for run in runs for variant in run.variants[1:]
        ),
        equivalence=tuple(check for run in runs for check in run.checks),
        bounds=bounds_of(first.variants, first.measured, seed),
        environment=environment(first.opened),
        command=command,
        settings={
            **program.settings,
            **_stage_settings(_variants(runs)),
            "rounds": first.plan.rounds,
            "steps_per_block": _by_label(runs, "steps"),
            "steps_dropped_per_block": _by_label(runs, "dropped"),
            **({"groups": len(runs)} if len(runs) > 1 else {}),
            **({"stop_when_clear": True} if first.stop_when_clear else {}),
            **settings,
            "bootstrap_seed": seed,
        },
        failed={label: words for label, words in failed.items() if label not in labels},
    )


def _stop_notes(run: InterleavedRun) -> list[str]:
    if not run.stop_when_clear:
        return []
    return [
        f"Blocks might end as soon as every ratio was clear, and ran for {run.plan.rounds} rounds; "
        "so the intervals hold at whichever round one looks, and are wider than those of a fixed "
        "number of rounds."
    ]


def _failure_notes(failed: Mapping[str, str], measured: Sequence[str]) -> list[str]:
    return [
        f"{words}; {'it has no trace' if label in measured else 'it was left out'}."
        for label, words in failed.items()
    ]


def _variants(runs: Sequence[InterleavedRun]) -> list[Variant]:
    """All variants, the baseline once."""
    return [runs[0].variants[0], *(variant for run in runs for variant in run.variants[1:])]


def _measured_variants(runs: Sequence[InterleavedRun], seed: int) -> list[MeasuredVariant]:
    run_of = {variant.label: run for run in reversed(runs) for variant in run.variants}
    return [_measured(variant, run_of[variant.label], seed) for variant in _variants(runs)]


def _measured(variant: Variant, run: InterleavedRun, seed: int) -> MeasuredVariant:
    blocks = run.measured[variant.label]
    rate = rate_interval(blocks.rates, seed=seed, anytime=run.stop_when_clear)
    return MeasuredVariant(
        label=variant.label,
        steps_per_s=rate.value,
        low=rate.low,
        high=rate.high,
        block_steps_per_s=blocks.rates,
        step_ms_median=blocks.step_ns_median / 1e6,
        trace=run.traces.get(variant.label),
        plan=variant.plan,
        notes=variant.notes(),
    )


def _ratio(program: AnyProgram, run: InterleavedRun, variant: Variant, seed: int) -> Ratio:
    first = run.variants[0]
    interval = paired_ratio(
        run.measured[variant.label].rates,
        run.measured[first.label].rates,
        # Of samples where a step has more of them.
        samples_of_a_step(program, variant) / samples_of_a_step(program, first),
        seed=seed,
        anytime=run.stop_when_clear,
    )
    return Ratio(
        label=variant.label,
        ratio=interval.value,
        low=interval.low,
        high=interval.high,
        verdict=verdict(interval),
        # A trace has no times of kernels on a GPU.
        predicted=None if run.opened.gpus else variant.predicted,
    )


def _by_label(runs: Sequence[InterleavedRun], field: str) -> dict[str, int]:
    """A field of the plan of blocks; of what ran in several groups, that of the first."""
    return {
        label: count
        for run in reversed(runs)
        for label, count in zip(run.measured, getattr(run.plan, field), strict=True)
    }


def _stage_settings(variants: Sequence[Variant]) -> dict[str, Any]:
    """Options of stages and executors, as far as a variant has them."""
    wishes = [variant.optimizations for variant in variants]
    settings: dict[str, Any] = {}
    for stage in [wish.stage for wish in wishes if wish.stage][:1]:
        settings |= {"stage.capacity": stage.capacity, "stage.num_threads": stage.num_threads}
    for smart in [wish.smart_stage for wish in wishes if wish.smart_stage][:1]:
        settings |= {
            "smart_stage.capacity": smart.capacity or "chosen by the plan",
            "smart_stage.num_threads": smart.num_threads or "chosen by the plan",
            "smart_stage.reorder": smart.reorder,
        }
    if any(variant.learning_steps for variant in variants):
        settings |= {
            "cost_model_executor.start_step": LEARNING.start_step,
            "cost_model_executor.stop_step": LEARNING.stop_step,
        }
    return settings

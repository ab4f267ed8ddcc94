"""Runs what the equivalence checks compare: first steps from one seed, and batches.

Each check is run in all workers at once; nothing is timed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from workbench.experiments.measurement.check_sessions import (
    close_session,
    open_session,
    run_all,
    run_steps,
)
from workbench.experiments.measurement.equivalence import (
    ROUNDINGS,
    TOLERANCE,
    Equivalence,
    bit_equal_losses,
    equal_losses,
    other_losses,
    same_batches,
    verified_parts,
)
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.wire.messages import Opened, VerifyFusion

_SEEDS = (
    "weights or data begin differently; TensorFlow, NumPy and random are seeded before a program "
    "is built, so look for a generator of its own without a seed, such as np.random.default_rng()"
)
_OTHERWISE = (
    "the baseline begins with this loss again in a second session, so neither weights nor data are "
    "the cause: the variant computes the step otherwise. Report it; plan.verify(…) and the plan's "
    "describe() say what was rewritten"
)
_END = (
    "steps alone are compared: over data of unknown length plain fit counts one more step in "
    "optimizer.iterations at each epoch's end, a staged one does not, so a learning rate that "
    "follows it, and the history, differ from the second epoch on; assert_cardinality gives the "
    "data a length"
)
_TO_THE_END = 1_000_000_000
_FEWEST_THREADS_TO_MIX = 2
# Each keeps a core busy while its graph is built.
_AT_ONCE = 2


def compare_losses(
    variants: Sequence[Variant],
    workers: Sequence[Worker],
    opened: Opened,
    steps: int,
    seconds: float,
) -> list[Equivalence]:
    """Losses of the first steps from the same seed; every variant with one prefetch thread.

    Args:
      variants, workers: the baseline first.
      opened: what is known of the baseline's graph.
      steps: most steps to compare.
      seconds: for running them; fewer are compared where they are too few.
    """
    several = [variant.threads > 1 for variant in variants]
    sessions = ["single" if reopens else "main" for reopens in several]
    reopened = [worker for worker, reopens in zip(workers, several, strict=True) if reopens]
    for variant, worker, reopens in zip(variants, workers, several, strict=True):
        if reopens:
            open_session(worker, "single", "build", variant.with_threads(1))
    for worker in reopened:
        worker.receive()
    more = [0] * len(workers)
    losses = [ran.values for ran in run_steps(workers, sessions, steps, more, "loss", seconds)]
    close_session(reopened, "single")
    stale = [max(variants[0].stale_lookups, variant.stale_lookups) for variant in variants]
    toggles = [variant.other_training(variants[0]) for variant in variants]
    rounds = [opened.gpus or _sums_otherwise(variant, variants[0]) for variant in variants]
    checks = [
        other_losses(variants[i].label, losses[0], losses[i], stale[i], toggles[i])
        if stale[i] or toggles[i]
        else (equal_losses if rounds[i] else bit_equal_losses)(
            variants[i].label, losses[0], losses[i]
        )
        for i in range(1, len(variants))
    ]
    rounded: list[np.ndarray] = []
    pairs = zip(variants, workers, strict=True)
    alike = [
        worker
        for variant, worker in pairs
        if _runs_as(variant, variants[0]) and worker.failure is None
    ]
    # More of them allow no less, so what has passed needs none of the rest.
    while len(rounded) < len(ROUNDINGS) and any(map(_is_apart, checks)):
        roundings = ROUNDINGS[len(rounded) :][: min(len(alike), _AT_ONCE)]
        rounded += _rounded_losses(variants[0], alike, len(losses[0]), roundings)
        checks = [
            equal_losses(check.label, losses[0], curve, rounded) if _is_apart(check) else check
            for check, curve in zip(checks, losses[1:], strict=True)
        ]
    apart = [_begins_apart(*each, losses[0]) for each in zip(checks, losses[1:], strict=True)]
    advice = _advice(variants[0], workers[0], losses[0]) if any(apart) else ""
    advised = [
        dataclasses.replace(check, detail=f"{check.detail}; {advice}") if needs else check
        for check, needs in zip(checks, apart, strict=True)
    ]
    return [
        _with_end(check) if opened.end_counts and variant.optimizations.smart_stage else check
        for variant, check in zip(variants[1:], advised, strict=True)
    ]


def _sums_otherwise(variant: Variant, baseline: Variant) -> bool:
    """Whether sums have another order: of ops that either of both fuses, where threads split an
    op, by a toggle.

    Stages and executors change none. On a GPU, stock gradients of lookups differ from run to run.
    """
    on, off = variant.optimizations, baseline.optimizations
    rounded = {each for each in {*on.chosen} ^ {*off.chosen} if each.training != "same"}
    threads = on.intra_op_threads != off.intra_op_threads
    fused = on.fused_embeddings or off.fused_embeddings
    return bool(fused) or threads or bool(rounded)


def _is_apart(check: Equivalence) -> bool:
    """Whether losses are farther apart than is allowed so far."""
    return check.kind == "equal losses" and not check.passed


def _runs_as(variant: Variant, baseline: Variant) -> bool:
    """Whether a variant's process can run the baseline: what is set for all of it is the same."""
    on, off = variant.optimizations, baseline.optimizations
    return (on.chosen, on.inter_op_threads, on.intra_op_threads) == (
        off.chosen,
        off.inter_op_threads,
        off.intra_op_threads,
    )


def _rounded_losses(
    baseline: Variant, workers: Sequence[Worker], steps: int, roundings: Sequence[int]
) -> list[np.ndarray]:
    """Losses of the baseline's first steps where its weights begin so many roundings away.

    Args:
      baseline: what is run.
      workers: at least as many as there are roundings; each of these is run in one, all at once.
      steps: how many.
      roundings: how far away the weights begin, in numbers of their type.
    """
    used = workers[: len(roundings)]
    for worker, rounding in zip(used, roundings, strict=True):
        open_session(worker, "rounded", "build", baseline.with_threads(1), rounding=rounding)
    for worker in used:
        worker.receive()
    ran = run_all(used, ["rounded"] * len(used), [steps] * len(used), "loss")
    close_session(used, "rounded")
    return [each.values for each in ran]


def _begins_apart(check: Equivalence, losses: np.ndarray, baseline: np.ndarray) -> bool:
    """Whether a check failed because not even the first step is the same."""
    if check.passed or check.asked_otherwise or len(baseline) != len(losses) or not len(losses):
        return False
    return not _is_same(losses[0], baseline[0])


def _is_same(loss: float, other: float) -> bool:
    return bool(np.isclose(loss, other, rtol=TOLERANCE, atol=0, equal_nan=True))


def _advice(baseline: Variant, worker: Worker, losses: np.ndarray) -> str:
    """What to do where a variant begins otherwise, by whether the baseline repeats itself."""
    (again,) = _rounded_losses(baseline, [worker], 1, [0])
    return _OTHERWISE if len(again) and _is_same(again[0], losses[0]) else _SEEDS


def _with_end(check: Equivalence) -> Equivalence:
    """The check with what tells the history of a staged `fit` from that of a plain one."""
    return dataclasses.replace(check, detail=f"{check.detail}; {_END}")


def verify_fusion(variants: Sequence[Variant], workers: Sequence[Worker]) -> list[Equivalence]:
    """Compares the fused parts of each variant that has some with the graph's own nodes."""
    checks = []
    for variant, worker in zip(variants, workers, strict=True):
        if variant.optimizations.fuses_graph:
            # One after another: each holds its variables three times meanwhile.
            found = worker.call(VerifyFusion(session="main"))
            if worker.failure is None:
                checks.append(verified_parts(variant.label, found.right, found.detail))
    return checks


def compare_batches(
    program: AnyProgram,
    variants: Sequence[Variant],
    workers: Sequence[Worker],
    opened: Opened,
    steps: int,
    seconds: float,
) -> list[Equivalence]:
    """Batches of an epoch, or of the first steps; every staged variant with several threads.

    Args:
      program, variants, workers: the baseline first.
      opened: what is known of the baseline's graph.
      steps: most steps to compare, where the program has no part for an epoch.
      seconds: for running them; fewer are compared where they are too few.
    """
    epoch = program.build_epoch is not None
    if not epoch and not opened.has_fingerprint:
        return []
    mixed = [s.with_threads(max(s.threads, _FEWEST_THREADS_TO_MIX)) for s in variants]
    # Threads overtake each other: what one of them holds may come late, by so many steps, which a
    # variant runs beside those that are compared; then it may have begun as many batches again.
    held = [2 * variant.ahead + 8 if variant.ahead else 0 for variant in mixed]
    late = [held[0] + batches for batches in held[1:]]
    more = [2 * max(late), *late]
    for variant, worker in zip(mixed, workers, strict=True):
        open_session(worker, "batches", "build_epoch" if epoch else "build", variant)
    threads = [worker.receive().threads for worker in workers]
    most = _TO_THE_END if epoch else steps
    ran = run_steps(workers, ["batches"] * len(workers), most, more, "fingerprint", seconds)
    close_session(workers, "batches")
    return [
        # Data that ended for a variant has to have been all of the baseline's.
        same_batches(
            variant.label,
            ran[0].values,
            steps.values,
            threads=count,
            epoch=steps.ended,
            ahead=ahead,
        )
        for variant, count, ahead, steps in zip(
            variants[1:], threads[1:], late, ran[1:], strict=True
        )
    ]

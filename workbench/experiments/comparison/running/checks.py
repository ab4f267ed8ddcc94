"""The checks of a comparison: whether its variants train the same, and how well if not."""

from __future__ import annotations

from workbench.experiments.comparison.running.failures import Pairs, of_running, split
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.equivalence_runs import compare_batches, compare_losses
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import BATCHES, CHECK
from workbench.experiments.measurement.scored_runs import with_auc
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.worker.wire.messages import Opened

# What each check gets of the time that is left when it begins, and at least.
_CHECK_SHARE, _LEAST_S = 0.1, 1.0
# Seconds to open a session, where that is not known.
_OPEN_S = 1.5


def check_losses(
    pairs: Pairs,
    opened: Opened,
    steps: int,
    budget: TimeBudget,
    progress: Progress,
) -> list[Equivalence]:
    """Whether losses stay the same; the first steps of the sessions to measure are compared.

    Args:
      pairs: the baseline first.
      opened: what is known of the baseline's graph.
      steps: most steps to compare; 0 compares none.
      budget: of which each check takes a share.
      progress: shows what is done.
    """
    alike = _of_one_size(pairs)
    if not steps or len(alike) < 2:
        return []
    progress.phase("Checking that training stays the same", CHECK)
    checks: list[Equivalence] = []
    if opened.has_loss:
        seconds = budget.share_s(_CHECK_SHARE, _LEAST_S)
        checks = compare_losses(*split(alike), opened, steps, seconds)
        checks = of_running(checks, alike)
        alike = [pair for pair in alike if pair[1].failure is None]
    if opened.has_scores and checks:
        checks = with_auc(checks, *split(alike), budget.share_s(_CHECK_SHARE, _LEAST_S))
    return checks


def seconds_of_batches(
    program: AnyProgram,
    pairs: Pairs,
    opened: Opened,
    steps: int,
    budget: TimeBudget,
    open_s: float | None,
) -> tuple[float, float]:
    """What `check_batches` will take, about.

    Args:
      program, pairs, opened, steps: as of `check_batches`.
      budget: of which its steps take a share.
      open_s: seconds to open the sessions that were measured; None where that is not known.

    Returns:
      Seconds for its steps, and for all of it; 0 where there is nothing to check.
    """
    same = _with_same_batches(program, pairs, opened, steps)
    if not same:
        return 0.0, 0.0
    steps_s = budget.share_s(_CHECK_SHARE, _LEAST_S)
    return steps_s, steps_s + (_OPEN_S * len(same) if open_s is None else open_s)


def check_batches(
    program: AnyProgram,
    pairs: Pairs,
    opened: Opened,
    steps: int,
    seconds: float,
    progress: Progress,
) -> list[Equivalence]:
    """Whether batches stay the same, in sessions of their own, so that it may come after blocks.

    Args:
      program: what is run.
      pairs: the baseline first.
      opened: what is known of the baseline's graph.
      steps: most steps to compare; 0 compares none.
      seconds: for running them.
      progress: shows what is done.
    """
    same = _with_same_batches(program, pairs, opened, steps)
    if not same:
        return []
    progress.phase("Checking that batches stay the same", BATCHES)
    return compare_batches(program, *split(same), opened, steps, seconds)


def _of_one_size(pairs: Pairs) -> Pairs:
    """Those whose batches have as many rows as the baseline's."""
    batch = pairs[0][0].optimizations.batch_size
    return [(v, worker) for v, worker in pairs if v.optimizations.batch_size == batch]


def _with_same_batches(program: AnyProgram, pairs: Pairs, opened: Opened, steps: int) -> Pairs:
    """Those that have to read what the baseline reads, the baseline first; empty without any."""
    baseline = pairs[0][0]
    # What trains otherwise may read otherwise, too.
    same = [
        (variant, worker)
        for variant, worker in _of_one_size(pairs)
        if worker.failure is None and not variant.other_training(baseline)
    ]
    are_known = program.build_epoch is not None or opened.has_fingerprint
    return same if steps and are_known and len(same) > 1 else []

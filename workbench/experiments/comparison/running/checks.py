"""The checks of a comparison: whether its variants train the same, and how well if not."""

from __future__ import annotations

from workbench.experiments.comparison.running.failures import Pairs, of_running, split
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.measurement.equivalence_runs import compare_batches, compare_losses
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.schedule import CHECK
from workbench.experiments.measurement.scored_runs import with_auc
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.worker.wire.messages import Opened

# What each check gets of the time that is left when it begins, and at least.
_CHECK_SHARE, _LEAST_S = 0.1, 1.0


def run_checks(
    program: AnyProgram,
    pairs: Pairs,
    opened: Opened,
    steps: int,
    budget: TimeBudget,
    progress: Progress,
) -> list[Equivalence]:
    """Whether training stays the same; the first steps of the sessions to measure are compared.

    Args:
      program: what is run.
      pairs: the baseline first.
      opened: what is known of the baseline's graph.
      steps: most steps to compare; 0 compares none.
      budget: of which each check takes a share.
      progress: shows what is done.
    """
    baseline = pairs[0][0]
    batch = baseline.optimizations.batch_size
    alike = [(v, worker) for v, worker in pairs if v.optimizations.batch_size == batch]
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
    # What trains otherwise may read otherwise, too.
    same = [
        (variant, worker)
        for variant, worker in alike
        if worker.failure is None and not variant.other_training(baseline)
    ]
    if len(same) > 1:
        seconds = budget.share_s(_CHECK_SHARE, _LEAST_S)
        checks += compare_batches(program, *split(same), opened, steps, seconds)
    return checks

"""Searches with numbers chosen by hand."""

from __future__ import annotations

import math
from typing import Any

from tests.builders.comparisons import comparison, variant
from tests.builders.predictions import FUSED, INLINE, SMART, SMART_FUSED, STAGE, predicted
from workbench.core.optimizations import Optimizations
from workbench.core.options import ExecutorPolicy, StageOptions
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.program.as_code import compare_code
from workbench.experiments.search.best import Best, NotRaced, Raced

OFF = Optimizations()
COST_MODEL = Optimizations(executor=ExecutorPolicy.COST_MODEL)


def raced(on: Optimizations, ratio: float, half: float = 0.03, **more: Any) -> Raced:
    """A setting that ran 12 rounds and was predicted 3 % too high."""
    values = {
        "optimizations": on,
        "ratio": ratio,
        "low": ratio - half,
        "high": ratio + half,
        "rounds": 12,
        "predicted": predicted(on, ratio * 1.03),
        "memory_bytes": 512_000_000,
    }
    return Raced(**{**values, **more})


def measured(on: Optimizations, ratio: float) -> Comparison:
    """The comparison of the best one."""
    label = on.label(in_full=True)
    check = Equivalence(
        label=label, kind="equal losses", passed=True, steps=100, detail="from the same seed"
    )
    ratios = Ratio(label=label, ratio=ratio, low=ratio, high=ratio, verdict="faster")
    return comparison(
        variants=(variant("off", 40, 1), variant(label, 40 * ratio, 1)),
        ratios=(ratios,),
        equivalence=(check,),
    )


def search(best: Raced | None = None, *others: Raced, **changes: Any) -> Best:
    """Of 26 settings four raced; lookups fused behind a smart stage are the best."""
    best = best or raced(SMART_FUSED, 1.31)
    others = others or (
        raced(SMART, 1.3, dropped_s=61.0, reason="slower: 0.97× of smart stage + fused V1"),
        raced(FUSED, 1.12, dropped_s=48.2, rounds=7, reason="slower: 0.86× of smart stage"),
        raced(INLINE, 0.61, 0.05, dropped_s=33.0, rounds=5, reason="slower: 0.47× of smart stage"),
        raced(
            STAGE,
            1.1,
            rounds=2,
            low=0.0,
            high=math.inf,
            predicted=None,
            reason="still in the race when the time was up",
        ),
    )
    hopeless = "expected to give 0.80× at most; smart stage + fused V1 gives 1.28× at least"
    values = {
        "program": "dlrm",
        "baseline": OFF,
        "best": best,
        "runners_up": tuple(others),
        "not_measured": (
            NotRaced(optimizations=COST_MODEL, reason="the time was up before it was its turn"),
            *(
                NotRaced(
                    optimizations=Optimizations(
                        executor=ExecutorPolicy.INLINE, stage=StageOptions(capacity=capacity)
                    ),
                    reason=hopeless,
                    predicted=predicted(INLINE, 0.7),
                )
                for capacity in (1, 2, 3)
            ),
        ),
        "comparison": measured(best.optimizations, best.ratio),
        "code": compare_code([best.optimizations], OFF),
        "in_program": "config = tf.compat.v1.ConfigProto()",
        "budget_s": 120.0,
        "took_s": 96.4,
        "memory_limit_bytes": 8_000_000_000,
        "memory_bytes": 3_100_000_000,
        "rounds": 31,
        "notes": (),
    }
    return Best(**{**values, **changes})

"""Comparisons with numbers chosen by hand."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from tests.builders.plans import predictions, towers
from tests.builders.traces import staged_trace, unstaged_trace
from workbench.core.planning.planner import plan_stages
from workbench.core.trace.trace import Trace
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.bounds import Bound
from workbench.experiments.measurement.equivalence import Equivalence

ENVIRONMENT = {
    "tensorflow": "2.21.0",
    "workbench": "0.1.0",
    "python": "3.11.9",
    "cpu": "A Processor @ 2.60GHz",
    "cores": 2,
    "system": "Linux 6.1",
    "inter_op_threads": "one per core",
    "intra_op_threads": "one per core",
    "tf.data inject_prefetch": "off",
    "tf.data prefetch of its own": "no",
}
SETTINGS = {
    "data": "clicks.tsv",
    "rows": 200_000,
    "batch_size": 512,
    "input_latency_ms": 7.5,
    "seed": 1,
    "stage.capacity": 2,
    "stage.num_threads": 2,
    "rounds": 6,
    "steps_per_block": {"off": 40, "stage": 73, "input alone": 90},
    "bootstrap_seed": 0,
}


def variant(label: str, rate: float, half: float, **more: Any) -> MeasuredVariant:
    """Six blocks that alternate around the rate."""
    swing = (-1, 1, -0.5, 0.5, 1, -1)
    return MeasuredVariant(
        **{
            "label": label,
            "steps_per_s": rate,
            "low": rate - half,
            "high": rate + half,
            "block_steps_per_s": tuple(rate + half * s for s in swing),
            "step_ms_median": 1000 / rate,
            **more,
        }
    )


def planned_comparison(**changes: Any) -> Comparison:
    """The same with a smart stage, which a plan has predicted to be 1.95× as fast."""
    made = dataclasses.replace(plan_stages(towers()), predictions=predictions(25.1, 12.9))
    smart = variant(
        "smart stage",
        80.1,
        0.9,
        plan=made,
    )
    plain = comparison()
    ratio = Ratio(
        label="smart stage", ratio=2.01, low=1.98, high=2.05, verdict="faster", predicted=1.95
    )
    values = {"variants": (*plain.variants, smart), "ratios": (*plain.ratios, ratio)}
    return comparison(**{**values, **changes})


@functools.cache
def _traces() -> tuple[Trace, Trace]:
    return unstaged_trace(), staged_trace()


def comparison(**changes: Any) -> Comparison:
    """DLRM off and staged: 39.8 ± 0.4 against 72.8 ± 0.8 steps/s."""
    unstaged, staged = _traces()
    values = {
        "program": "dlrm",
        "variants": (
            variant("off", 39.8, 0.4, trace=unstaged),
            variant("stage", 72.8, 0.8, trace=staged),
        ),
        "baseline": "off",
        "ratios": (Ratio(label="stage", ratio=1.829, low=1.801, high=1.858, verdict="faster"),),
        "equivalence": (
            Equivalence(
                label="stage",
                kind="bit-equal losses",
                passed=True,
                steps=200,
                detail="from the same seed, one prefetch thread",
            ),
            Equivalence(
                label="stage",
                kind="same batches",
                passed=True,
                steps=391,
                detail="each exactly once over a whole epoch, 2 prefetch threads",
            ),
        ),
        "bounds": (
            Bound(
                name="1 / max(T_input, T_compute)",
                steps_per_s=74.1,
                detail="T_input 13.5 ms, T_compute 11.9 ms; stage reaches 98.2 % (97.4 %–99.1 %)",
            ),
        ),
        "environment": ENVIRONMENT,
        "command": "workbench compare dlrm --toggle stage --data clicks.tsv",
        "settings": SETTINGS,
    }
    return Comparison(**{**values, **changes})


ALL = "stage + smart stage + fused V2 + cost model executor"
# label, steps/s, half of its interval, ratio, low, high, verdict
MEASURED = (
    ("stage", 54.2, 1.8, 1.36, 1.31, 1.41, "faster"),
    ("smart stage", 55.0, 6.1, 1.38, 0.98, 1.79, "no clear difference"),
    ("fused V1", 50.1, 0.9, 1.26, 1.22, 1.29, "faster"),
    ("fused V2", 51.8, 0.8, 1.30, 1.28, 1.33, "faster"),
    ("inline executor", 31.2, 0.6, 0.78, 0.76, 0.81, "slower"),
    ("cost model executor", 40.3, 1.1, 1.01, 0.98, 1.05, "no clear difference"),
    (ALL, 91.7, 1.2, 2.30, 2.22, 2.39, "faster"),
)


def every_toggle_comparison(plain: Trace | None = None, staged: Trace | None = None) -> Comparison:
    """Eight variants as `all=True` measures them; one trace for those with a stage, one for others.

    Four are faster, one is slower, two show no clear difference; all 14 checks passed.
    """
    return comparison(
        variants=(
            variant("off", 39.8, 0.4, trace=plain),
            *(
                variant(label, rate, half, trace=staged if "stage" in label else plain)
                for label, rate, half, *_ in MEASURED
            ),
        ),
        ratios=tuple(
            Ratio(label=label, ratio=value, low=low, high=high, verdict=verdict)
            for label, _, _, value, low, high, verdict in MEASURED
        ),
        equivalence=tuple(
            check for label, *_ in MEASURED for check in (_losses(label), _batches(label))
        ),
        bounds=(
            Bound(
                name="1 / max(T_input, T_compute)",
                steps_per_s=93.0,
                detail="T_input 10.7 ms, T_compute 9.9 ms: what overlapping the input alone can "
                f"reach; off reaches 42.8 % (42.1 %–43.4 %), {ALL} reaches 98.6 % (97.4 %–99.8 %)",
            ),
        ),
    )


def _losses(label: str) -> Equivalence:
    if "fused" in label:
        apart = f"at most {len(label)}.0e-08 apart, from the same seed, one prefetch thread"
        return Equivalence(label=label, kind="equal losses", passed=True, steps=200, detail=apart)
    same = "from the same seed, one prefetch thread"
    return Equivalence(label=label, kind="bit-equal losses", passed=True, steps=200, detail=same)


def _batches(label: str) -> Equivalence:
    order = ", in the same order" if "stage" not in label else ""
    detail = f"each exactly once over a whole epoch, 2 prefetch threads{order}"
    return Equivalence(label=label, kind="same batches", passed=True, steps=391, detail=detail)

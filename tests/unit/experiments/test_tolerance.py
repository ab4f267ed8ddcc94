"""How long a worker's answer may take, and whose failure is tolerated."""

from __future__ import annotations

from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.toggle import Toggle
from workbench.experiments.comparison.running.failures import tolerance_of
from workbench.experiments.program.variant import variants_of
from workbench.experiments.worker.tolerance import Tolerance

USUAL_S = 300.0


def tolerance(**options):
    return Tolerance(may_fail=["own", "stock"], may_hang=["own"], **options)


def test_a_hang_is_told_by_how_long_the_others_took():
    found = tolerance(budget_s=20.0)
    assert found.limit_s("own") == 30.0
    found.answered("stock", 8.0)
    found.answered("off", 7.0)
    # What may hang itself says nothing.
    found.answered("own", 1000.0)
    assert found.limit_s("own") == 40.0
    assert found.limit_s("stock") == found.limit_s("off") == USUAL_S
    found.started()
    assert found.limit_s("own") == 30.0


def test_a_long_budget_lengthens_it_and_a_number_sets_it():
    assert tolerance(budget_s=90.0).limit_s("own") == 90.0
    assert tolerance(budget_s=90.0, limit_s=4.0).limit_s("own") == 4.0


def test_the_baseline_and_optimizations_alone_may_not_fail():
    dim = Toggle("dim", [16, 32])
    variants = variants_of([dim, "stage", "grappler=off"], StageOptions(), SmartStageOptions())
    found = tolerance_of(variants, 4.0, 20.0)
    labels = [variant.label for variant in variants]
    assert labels == ["off", "dim 32", "stage", "Grappler off"]
    assert [found.may_fail(label) for label in labels] == [False, True, False, True]
    assert [found.limit_s(label) for label in labels] == [USUAL_S, 4.0, USUAL_S, USUAL_S]

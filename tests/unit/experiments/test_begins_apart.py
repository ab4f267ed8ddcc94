"""What is said of a variant whose first loss already is another one: seeds, or the variant."""

from __future__ import annotations

import numpy as np
import pytest

from tests.builders.opened import OPENED
from tests.unit.experiments.test_on_a_gpu import LOSSES, Trained
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.measurement.equivalence_runs import compare_losses
from workbench.experiments.program.variant import variants_of
from workbench.experiments.worker.wire.messages import Open


class Unseeded(Trained):
    """A worker whose every session begins with other losses."""

    def send(self, command):
        if isinstance(command, Open):
            self._losses = self._losses + np.float32(0.25)
        super().send(command)


@pytest.mark.parametrize(
    ("baseline", "seeds"), [(Trained(LOSSES), False), (Unseeded(LOSSES), True)]
)
def test_seeds_are_blamed_only_where_the_baseline_does_not_repeat_itself(baseline, seeds):
    variants = variants_of(["stage"], StageOptions(), SmartStageOptions())
    (check,) = compare_losses(variants, [baseline, Trained(LOSSES + 1)], OPENED, 30, 10.0)
    assert not check.passed
    assert ("generator of its own without a seed" in check.detail) == seeds
    assert ("the variant computes the step otherwise" in check.detail) != seeds

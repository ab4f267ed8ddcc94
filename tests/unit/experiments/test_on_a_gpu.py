"""What a comparison says of steps on a GPU, where sums come in another order every time."""

import dataclasses

import numpy as np
import pytest

from tests.builders.opened import OPENED
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.experiments.comparison.environment import environment
from workbench.experiments.measurement.equivalence_runs import compare_losses
from workbench.experiments.program.variant import variants_of
from workbench.experiments.worker.wire.messages import RunSteps, Steps

ON_A_GPU = dataclasses.replace(OPENED, gpus=("NVIDIA H200",))
LOSSES = np.linspace(0.7, 0.6, 40, dtype=np.float32)
ROUNDED = LOSSES * np.float32(1 + 5e-7)


class Trained:
    """A worker whose steps have these losses."""

    failure = None

    def __init__(self, losses):
        self._losses, self._asked, self._first = losses, [], 0

    def send(self, command):
        self._asked.append(command)

    def receive(self, expected_s=0.0):
        command = self._asked.pop(0)
        if not isinstance(command, RunSteps):
            self._first = 0
            return OPENED
        first, self._first = self._first, self._first + command.steps
        values = self._losses[first : self._first]
        ends = np.arange(len(values) + 1) * 1_000_000
        return Steps(ends_ns=ends, values=values, ended=False)

    def call(self, command, expected_s=0.0):
        self.send(command)
        return self.receive()


@pytest.mark.parametrize(
    ("opened", "kind", "passed"),
    [(OPENED, "bit-equal losses", False), (ON_A_GPU, "equal losses", True)],
)
def test_losses_of_a_stage_may_round_otherwise_there_alone(opened, kind, passed):
    variants = variants_of(["stage"], StageOptions(), SmartStageOptions())
    workers = [Trained(LOSSES), Trained(ROUNDED)]
    (check,) = compare_losses(variants, workers, opened, 30, 10.0)
    assert (check.kind, check.passed, check.steps) == (kind, passed, 30)


def test_losses_beside_a_fused_baseline_may_round_otherwise():
    settings = Optimizations(), Optimizations(fused_embeddings="v2")
    variants = variants_of(settings[:1], StageOptions(), SmartStageOptions(), settings[1])
    (check,) = compare_losses(variants, [Trained(LOSSES), Trained(ROUNDED)], OPENED, 30, 10.0)
    assert (check.kind, check.passed) == ("equal losses", True)


def test_a_receipt_names_the_gpu():
    assert environment(ON_A_GPU)["gpus"] == "NVIDIA H200"
    assert "gpus" not in environment(OPENED)

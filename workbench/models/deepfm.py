"""DeepFM on a Criteo click log, as a program to run and compare; loads no TensorFlow."""

from __future__ import annotations

import dataclasses

from workbench.experiments.program import Program
from workbench.models.program import ModelOptions, model_program


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeepFmOptions(ModelOptions):
    """What a DeepFM run reads and how it trains; the learning rate is Adam's.

    Attributes:
      table_learning_rate: of the tables' Adagrad.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.05


def deepfm_program(options: DeepFmOptions) -> Program:
    """DeepFM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("deepfm", options)

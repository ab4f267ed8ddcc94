"""DLRM on a Criteo click log, as a program to run and compare; loads no TensorFlow."""

from __future__ import annotations

import dataclasses

from workbench.experiments.program import Program
from workbench.models.program import ModelOptions, model_program


@dataclasses.dataclass(frozen=True, kw_only=True)
class DlrmOptions(ModelOptions):
    """What a DLRM run reads and how it trains; the learning rate is Adagrad's."""


def dlrm_program(options: DlrmOptions) -> Program:
    """DLRM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dlrm", options)

"""DSSM on a Taobao log of shown ads, as a program to run and compare; loads no TensorFlow."""

from __future__ import annotations

import dataclasses

from workbench.experiments.program import Program
from workbench.models.columns import require_columns
from workbench.models.program import ModelOptions, model_program
from workbench.models.taobao import DSSM_TABLE


@dataclasses.dataclass(frozen=True, kw_only=True)
class DssmOptions(ModelOptions):
    """What a DSSM run reads and how it trains.

    Attributes:
      data: a `DSSM_TABLE`.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    batch_size: int = 4096
    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_columns(self.data, DSSM_TABLE, "DSSM")


def dssm_program(options: DssmOptions) -> Program:
    """DSSM as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dssm", options)

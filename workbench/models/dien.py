"""DIEN on a Taobao log of click histories with negatives, as a program; loads no TensorFlow."""

from __future__ import annotations

import dataclasses

from workbench.experiments.program import Program
from workbench.models.columns import require_columns
from workbench.models.program import ModelOptions, model_program
from workbench.models.taobao import SEQUENCE_NEGATIVE_TABLE


@dataclasses.dataclass(frozen=True, kw_only=True)
class DienOptions(ModelOptions):
    """What a DIEN run reads and how it trains.

    Attributes:
      data: a `SEQUENCE_NEGATIVE_TABLE`.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_columns(self.data, SEQUENCE_NEGATIVE_TABLE, "DIEN")


def dien_program(options: DienOptions) -> Program:
    """DIEN as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("dien", options)

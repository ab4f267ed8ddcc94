"""DIN on a Taobao log of click histories, as a program to run and compare; loads no TensorFlow."""

from __future__ import annotations

import dataclasses

from workbench.experiments.program import Program
from workbench.models.columns import require_columns
from workbench.models.program import ModelOptions, model_program
from workbench.models.taobao import SEQUENCE_TABLE


@dataclasses.dataclass(frozen=True, kw_only=True)
class DinOptions(ModelOptions):
    """What a DIN run reads and how it trains.

    Attributes:
      data: a `SEQUENCE_TABLE`; columns behind it are not read.
      learning_rate: of Adam.
      table_learning_rate: of Adagrad, which trains the tables.
    """

    learning_rate: float = 0.001
    table_learning_rate: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_columns(self.data, SEQUENCE_TABLE, "DIN")


def din_program(options: DinOptions) -> Program:
    """DIN as a program, with an epoch to compare batches over and both parts of its bound."""
    return model_program("din", options)

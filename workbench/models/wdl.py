"""Wide & Deep on a Criteo click log, as a program to run and compare; loads no TensorFlow."""

from __future__ import annotations

import dataclasses

from workbench.experiments.program import Program
from workbench.models.program import ModelOptions, model_program


@dataclasses.dataclass(frozen=True, kw_only=True)
class WdlOptions(ModelOptions):
    """What a Wide & Deep run reads and how it trains.

    Attributes:
      learning_rate: of the deep part's Adam.
      wide_learning_rate: of the wide part's FTRL.
      table_learning_rate: of the Adagrad of the deep part's tables.
    """

    wide_learning_rate: float = 0.2
    table_learning_rate: float = 0.05


def wdl_program(options: WdlOptions) -> Program:
    """Wide & Deep as a program, with an epoch to compare batches over and both parts of its
    bound."""
    return model_program("wdl", options)

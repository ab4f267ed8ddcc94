"""What the options of all models have in common."""

from __future__ import annotations

import dataclasses
import math

from workbench.errors import OptionError
from workbench.models.data.table_format import CheckedTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """What a model's run reads and how it trains; each model has defaults of its own.

    Attributes:
      data: the checked file; its first `rows` rows are read, again and again.
      batch_size: rows in a batch.
      input_latency_ms: how long each batch waits, without using a CPU, before it is delivered.
      learning_rate: of the model's optimizer; above 0, as all other learning rates.
      seed: of all initial weights.
    """

    data: CheckedTable
    batch_size: int = 512
    input_latency_ms: float = 0.0
    learning_rate: float = 0.01
    seed: int = 1

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise OptionError(f"batch_size is {self.batch_size}; expected at least 1")
        if not 0 <= self.input_latency_ms < 60_000:
            raise OptionError(
                f"input_latency_ms is {self.input_latency_ms}; expected 0 to 60 000 milliseconds"
            )
        for field in dataclasses.fields(self):
            rate = getattr(self, field.name)
            if field.name.endswith("learning_rate") and not 0 < rate < math.inf:
                raise OptionError(f"{field.name} is {rate!r}; expected a number above 0")

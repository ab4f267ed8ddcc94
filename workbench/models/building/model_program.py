"""What the models have in common: options of a run, and the program of a graph; no TensorFlow.

The graph of a model stands in a module of its own, which only a child process imports.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.core.options import Optimizations
from workbench.errors import OptionError, one_line
from workbench.experiments.program.program import PARTS, Built, Program
from workbench.models.data.text_table import CheckedTable

if TYPE_CHECKING:
    from workbench.models.building.graph_model import GraphModel


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


def model_program(name: str, options: ModelOptions, graph: Callable[[], GraphModel]) -> Program:
    """A program with an epoch to compare batches over and both parts of its bound.

    Args:
      name: of the program.
      options: its settings.
      graph: imports the model's graph; a function of a module, so that a child finds it.
    """
    parts = {part: _Part(graph, part, options) for part in PARTS}
    said = {field.name: getattr(options, field.name) for field in dataclasses.fields(options)}
    del said["data"]
    return Program(
        name=name,
        build=parts["build"],
        build_epoch=parts["build_epoch"],
        build_input=parts["build_input"],
        build_compute=parts["build_compute"],
        settings={"data": one_line(str(options.data.path)), "rows": options.data.rows, **said},
    )


@dataclasses.dataclass(frozen=True)
class _Part:
    """One part of a model's graph, which is imported when the part is built."""

    graph: Callable[[], GraphModel]
    part: str
    options: ModelOptions

    def __call__(self, optimizations: Optimizations) -> Built:
        built: Built = getattr(self.graph(), self.part)(self.options, optimizations)
        return built

"""DLRM on a Criteo click log, as a program to run and compare; loads no TensorFlow.

The graph itself is in `dlrm_graph`, which only a child process imports.
"""

from __future__ import annotations

import dataclasses

from workbench.core.options import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program import Built, Program
from workbench.models.data import CheckedTable


@dataclasses.dataclass(frozen=True, kw_only=True)
class DlrmOptions:
    """What a DLRM run reads and how it trains.

    Attributes:
      data: the checked click log; its first `rows` rows are read, again and again.
      batch_size: rows in a batch.
      input_latency_ms: how long each batch waits, without using a CPU, before it is delivered.
      learning_rate: of Adagrad.
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


def dlrm_program(options: DlrmOptions) -> Program:
    """DLRM as a program, with an epoch to compare batches over and both parts of its bound."""
    return Program(
        name="dlrm",
        build=_Part("build", options),
        build_epoch=_Part("build_epoch", options),
        build_input=_Part("build_input", options),
        build_compute=_Part("build_compute", options),
        settings={
            "data": str(options.data.path),
            "rows": options.data.rows,
            "batch_size": options.batch_size,
            "input_latency_ms": options.input_latency_ms,
            "learning_rate": options.learning_rate,
            "seed": options.seed,
        },
    )


@dataclasses.dataclass(frozen=True)
class _Part:
    """One build function of `dlrm_graph`, which is imported when it is called."""

    name: str
    options: DlrmOptions

    def __call__(self, optimizations: Optimizations) -> Built:
        from workbench.models import dlrm_graph

        built: Built = getattr(dlrm_graph, self.name)(self.options, optimizations)
        return built

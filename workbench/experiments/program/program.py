"""Program: what is run, as functions that build it; Built: what one of them has built.

A program holds no graph. Each function is called in a fresh graph of a child process, where it
arrives by cloudpickle, so that it may live in a notebook cell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program.origin import Origin
from workbench.experiments.program.settings_names import require_free
from workbench.named_fields import named_fields

# TensorFlow's own for ops with a seed in a graph without one, so that those stay as they are.
DEFAULT_GRAPH_SEED = 87654321


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class Built:
    """What a step runs, in the graph in which it was built.

    Attributes:
      train_op: what every step runs.
      loss: scalar float tensor fetched with it; needed to compare losses, may be None.
      fingerprint: scalar int64 tensor that tells the step's batch from any other; needed to
        compare batches, may be None. Computed behind the stage.
      labels, scores: of the rows of the step's batch, as many of each, both or neither. A label is
        0 or 1, and a score is the higher the likelier 1 is. They give the AUC of a training that
        is compared with another one. A measured step fetches neither.
      hooks: further SessionRunHooks; those of stage and capture are added by the runner.
      config: the session's ConfigProto; None takes TensorFlow's defaults.
    """

    train_op: Any
    loss: Any = None
    fingerprint: Any = None
    hooks: Sequence[Any] = ()
    config: Any = None
    labels: Any = None
    scores: Any = None

    def __post_init__(self) -> None:
        if (self.labels is None) != (self.scores is None):
            given, other = ("scores", "labels") if self.labels is None else ("labels", "scores")
            raise OptionError(f"wb.Built has {given} and no {other}; expected both or neither")


Build = Callable[[Optimizations], Built]


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """A training program and, as far as it can, its parts.

    Attributes:
      name: what tables and reports call it.
      build: builds the step with the given optimizations.
      build_epoch: builds a step with a fingerprint over data that ends; with it, batches are
        compared over a whole epoch. Without it they are compared over the first steps of `build`.
      build_input: builds a step that only fetches the input; its time is T_input.
      build_compute: builds a step on input that lies ready; its time is T_compute. With both, the
        bound 1 / max(T_input, T_compute) is measured.
      settings: what else a reader of the report must know. Its "batch_size" says that the
        functions build with `optimizations.batch_size` where that is not None, so that the size
        of a batch can be chosen.
      origin: what makes the program again from a report; None where only Python code does.
    """

    name: str
    build: Build
    build_epoch: Build | None = None
    build_input: Build | None = None
    build_compute: Build | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    origin: Origin | None = None

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise OptionError(f"Program.name is {self.name!r}; expected a name")
        for part in PARTS:
            function = getattr(self, part)
            optional = part != "build"
            if not (callable(function) or (optional and function is None)):
                raise OptionError(
                    f"Program.{part} is {function!r}; expected a function of Optimizations"
                )
        require_free(self.settings, "Program.settings")


PARTS = ("build", "build_epoch", "build_input", "build_compute")

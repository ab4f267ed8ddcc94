"""FunctionProgram: what is run where the user trains with a tf.function or a Keras model.

It holds neither: `make` is called in a child process, where it arrives by cloudpickle, so that it
may live in a notebook cell.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from workbench import _native
from workbench.core.optimizations import Optimizations
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError, UnsupportedError
from workbench.experiments.program.origin import Origin
from workbench.experiments.program.own.graph_program import is_graph
from workbench.experiments.program.program import Program
from workbench.experiments.program.refusals import refusal_of
from workbench.experiments.program.settings_names import require_free
from workbench.experiments.program.toggles import STAGE, USUAL, require_free_names
from workbench.named_fields import named_fields


@named_fields
@dataclasses.dataclass(frozen=True, kw_only=True)
class FunctionProgram:
    """A training step of TensorFlow 2 and its data.

    Each variant calls `make` in a process of its own, from the same random seed. It then runs the
    step on one element of the dataset after the other, again from its beginning when it ends.

    Attributes:
      name: what tables and reports call it.
      make: a function of nothing that returns (train_step, dataset). The step is a `tf.function` of
        an element of the `tf.data.Dataset`, which may be the components of a tuple. It returns the
        loss, a scalar, or a dict with it as "loss". If batches are to be compared too, the dict
        also has "fingerprint", a scalar integer that tells a batch from any other. Without a loss,
        losses are not compared. Or (model, dataset) with a compiled Keras model: its `train_step`
        is run, after one step of `fit` that builds its weights. Where it has a parameter
        `batch_size`, the size of a batch can be chosen; its default, or the "batch_size" of
        `settings`, is the program's own. A toggle of your own is a parameter of its name, or is
        read from a parameter `optimizations` as `optimizations["name"]`. The dict may also have
        "labels" and "scores", as of `Built`; of a model with one output they are known.
      settings: what else a reader of the report must know, such as the size of a batch.
      origin: what makes the program again from a report; None where only Python code does.
    """

    name: str
    make: Callable[..., tuple[Any, Any]]
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    origin: Origin | None = None

    # A function has no parts: T_input and T_compute cannot be told apart in it.
    build_epoch: ClassVar[None] = None
    build_input: ClassVar[None] = None
    build_compute: ClassVar[None] = None

    def __post_init__(self) -> None:
        if not self.name or not isinstance(self.name, str):
            raise OptionError(f"FunctionProgram.name is {self.name!r}; expected a name")
        if not callable(self.make):
            raise OptionError(
                f"FunctionProgram.make is {self.make!r}; expected a function that returns "
                "(train_step, dataset) or (model, dataset)"
            )
        require_free(self.settings, "FunctionProgram.settings")


AnyProgram = Program | FunctionProgram


def require_program(program: object) -> None:
    """Requires a program, and says how one is made of what was given instead.

    Raises:
      OptionError: anything else.
    """
    if isinstance(program, AnyProgram):
        return
    given = f"a {type(program).__name__}"
    if callable(program) and hasattr(program, "__name__"):
        name = program.__name__
        given = f"the function {name!r}; give wb.Program(name={name!r}, build={name})"
    elif hasattr(program, "train_step"):
        given = f"the model {program!r}"
    elif is_graph(program):
        given += '; make a program of it: wb.graph_program(graph, train_op="…", loss="…")'
    raise OptionError(
        f"expected a wb.Program, whose build(optimizations) returns wb.Built(train_op=…), or a "
        f"wb.FunctionProgram, whose make() returns (train_step, dataset) or (model, dataset), and "
        f"got {given}"
    )


def require_step_stats(program: AnyProgram, step_stats: bool) -> None:
    """Requires that a program can be traced with TensorFlow's step stats, where they are wanted.

    Raises:
      OptionError: step stats of a function.
    """
    if step_stats and isinstance(program, FunctionProgram):
        raise OptionError(
            f"program {program.name!r} is a FunctionProgram, and step_stats=True asks for "
            "TensorFlow's step stats, which only runs of a session return; leave it out: the steps "
            "are traced by the executor that runs them"
        )


def require_traceable(program: AnyProgram) -> None:
    """Requires that steps of a program can be traced.

    A session has TensorFlow's step stats where nothing else traces it; a function has nothing.

    Raises:
      UnsupportedError: a function, and the native library has no executors.
    """
    if isinstance(program, FunctionProgram):
        _native.require_executors("a trace of a tf.function")


def untraced(program: AnyProgram) -> str:
    """Why no step of a program can be traced, as a sentence; else empty."""
    try:
        require_traceable(program)
    except UnsupportedError as error:
        return f"Nothing is traced: {error}."
    return ""


def usual_toggles(program: AnyProgram) -> tuple[str, ...]:
    """What is measured of a program where nobody says what."""
    possible = (each for each in USUAL if each != STAGE)
    return tuple(possible) if isinstance(program, FunctionProgram) else USUAL


def arguments_of_make(program: FunctionProgram, optimizations: Optimizations) -> dict[str, Any]:
    """What a program's `make` is called with: the size of a batch, and the author's toggles.

    Raises:
      OptionError: it has no parameter for a toggle.
    """
    given: dict[str, Any] = {}
    if optimizations.batch_size is not None:
        given["batch_size"] = optimizations.batch_size
    parameters = _parameters_of(program.make)
    reads_all = _SETTING in parameters
    if reads_all:
        given[_SETTING] = optimizations
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    for choice in optimizations.chosen:
        name = choice.toggle.name
        if type(choice.toggle) is not Toggle:
            continue
        if name in parameters or (takes_any and not reads_all):
            given[name] = choice.value
        elif not reads_all:
            raise OptionError(
                f"program {program.name!r}: make has no parameter {name!r}, which the toggle "
                "of that name would give it"
            )
    return given


# The parameter of `make` that has the whole setting.
_SETTING = "optimizations"


def _parameters_of(make: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(make).parameters
    except (TypeError, ValueError):
        return {}


_NO_BATCH_SIZE = {
    Program: "does not say which size its batches have; give settings={'batch_size': …}, and build "
    "with optimizations.batch_size where that is not None",
    FunctionProgram: "cannot be made with another size of its batches; give make a parameter "
    "batch_size with a default",
}


def own_batch_size(program: AnyProgram) -> int | None:
    """Rows of a batch where nothing else is wished for; None where that cannot be chosen."""
    size = program.settings.get("batch_size")
    if isinstance(program, FunctionProgram):
        parameter = _parameters_of(program.make).get("batch_size")
        if parameter is None:
            return None
        if parameter.default is not inspect.Parameter.empty:
            size = size or parameter.default
    return size if isinstance(size, int) and size > 0 else None


def require_possible(program: AnyProgram, optimizations: Optimizations) -> None:
    """Requires that a program can have these optimizations at all.

    Raises:
      OptionError: a stage of the user's own in a function, another size of a batch where the
        program does not say its own, a choice of a toggle that it cannot have, or two toggles of
        one name.
      UnsupportedError: an executor, and the native library has none.
    """
    require_free_names([choice.toggle for choice in optimizations.chosen])
    if optimizations.executor is not None:
        _native.require_executors(f"the executor policy {str(optimizations.executor)!r}")
    if optimizations.batch_size and own_batch_size(program) is None:
        raise OptionError(f"program {program.name!r} {_NO_BATCH_SIZE[type(program)]}")
    if refused := refusal_of(optimizations, is_function=isinstance(program, FunctionProgram)):
        raise OptionError(f"program {program.name!r} cannot have {refused}")
    if not isinstance(program, FunctionProgram):
        return
    arguments_of_make(program, optimizations)
    if optimizations.stage:
        raise OptionError(
            f"program {program.name!r} is a FunctionProgram, and the toggle 'stage' stands for a "
            "wb.staged(…) in a graph that a session runs; a tf.function is staged as a whole: use "
            "toggles=['smart_stage'], or give the graph as a wb.Program"
        )

"""Programs that stand in a file of the user's own; the file runs in child processes alone.

A model or a function cannot travel from one process to another, the place where it stands can: each
callable here names it, and runs the file where it arrives.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.program.function_program import AnyProgram, FunctionProgram
from workbench.experiments.program.origin import Origin
from workbench.experiments.program.own.program_place import ProgramPlace
from workbench.experiments.program.program import PARTS, Built, Program

Kind = Literal["build", "make", "program", "function program", "objects"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class FoundProgram:
    """What stands at a place, as a child process saw it.

    Attributes:
      kind: a function that builds or makes, a program, or a model and its dataset.
      name: what the program is called.
      parts: of a program, which of PARTS it has.
      settings: of a program.
      parameters: names of its make's parameters, "**" for any others.
    """

    kind: Kind
    name: str
    parts: tuple[str, ...] = ()
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    parameters: tuple[str, ...] = ()


def program_at(place: ProgramPlace, facts: FoundProgram) -> AnyProgram:
    """The program, which holds nothing but its place."""
    settings = {"program": place.text, **facts.settings}
    origin = Origin(place=place.text)
    if facts.kind in ("build", "program"):
        parts: dict[str, Any] = {part: BuildAt(place, part) for part in facts.parts}
        return Program(name=facts.name, settings=settings, origin=origin, **parts)
    make = MakeObjectsAt(place) if facts.kind == "objects" else MakeAt(place, facts.parameters)
    return FunctionProgram(name=facts.name, make=make, settings=settings, origin=origin)


def find_program(place: ProgramPlace) -> FoundProgram:
    """Runs the file and says what stands there; called in a child process.

    Raises:
      OptionError: nothing is there, or nothing that can be run.
    """
    module = _loaded(place)
    values = [_named(module, name, place) for name in place.names]
    if len(values) == 2:
        return FoundProgram(kind="objects", name=place.short_name)
    value, name = values[0], place.names[0]
    if isinstance(value, Program):
        parts = tuple(part for part in PARTS if getattr(value, part))
        return FoundProgram(kind="program", name=value.name, parts=parts, settings=value.settings)
    if isinstance(value, FunctionProgram):
        size = _own_size(value.make)
        settings = {**size, **value.settings}
        return FoundProgram(
            kind="function program",
            name=value.name,
            settings=settings,
            parameters=_names_of(value.make),
        )
    return _function(value, name, place)


@dataclasses.dataclass(frozen=True)
class _At:
    """What a file has; the file runs where this arrives, while no graph is being built."""

    place: ProgramPlace

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        _loaded(self.place)


@dataclasses.dataclass(frozen=True)
class BuildAt(_At):
    """A part of a graph's program: what `Program.build` and its like are."""

    part: str

    def __call__(self, optimizations: Optimizations) -> Built:
        value = _value(self.place)
        built: Built = (getattr(value, self.part) if isinstance(value, Program) else value)(
            optimizations
        )
        return built


@dataclasses.dataclass(frozen=True)
class MakeAt(_At):
    """What `FunctionProgram.make` is; it has the parameters of what stands in the file."""

    parameters: tuple[str, ...] = ()

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter
        return inspect.Signature(
            [
                kind("others", kind.VAR_KEYWORD)
                if name == _OTHERS
                else kind(name, kind.KEYWORD_ONLY)
                for name in self.parameters
            ]
        )

    def __call__(self, **given: Any) -> Any:
        return _make(self.place)(**given)


@dataclasses.dataclass(frozen=True)
class MakeObjectsAt:
    """A model and its dataset, new ones each time: the file runs again."""

    place: ProgramPlace

    def __call__(self) -> Any:
        module = _run(self.place)
        return tuple(_named(module, name, self.place) for name in self.place.names)


def _value(place: ProgramPlace) -> Any:
    return _named(_loaded(place), place.names[0], place)


def _make(place: ProgramPlace) -> Any:
    value = _value(place)
    return value.make if isinstance(value, FunctionProgram) else value


def _function(value: Any, name: str, place: ProgramPlace) -> FoundProgram:
    """What a function is for, by its parameters.

    Raises:
      OptionError: it is no function, or one of something else.
    """
    what = f"{place.title}: {name!r}"
    if hasattr(value, "train_step") or hasattr(value, "get_concrete_function"):
        kind = "a model" if hasattr(value, "train_step") else "a tf.function"
        raise OptionError(
            f"{what} is {kind}, which is trained on a dataset; name both, as in "
            f"{place.title}:{name},dataset"
        )
    expected = (
        "expected build(optimizations), which returns wb.Built(train_op=…), or make(), which "
        "returns (train_step, dataset) or (model, dataset)"
    )
    if not callable(value) or isinstance(value, type):
        kind = "a class" if isinstance(value, type) else f"of type {type(value).__name__}"
        raise OptionError(f"{what} is {kind} and no function; {expected}")
    parameters = list(_parameters(value).values())
    needed = [p.name for p in parameters if p.default is p.empty and p.kind not in _ANY]
    if "batch_size" in needed:
        raise OptionError(f"{what} needs a batch_size; give that parameter a default")
    if len(needed) > 1:
        raise OptionError(f"{what} takes {' and '.join(needed)}; {expected}")
    if needed or any(p.name == "optimizations" for p in parameters):
        return FoundProgram(kind="build", name=place.short_name, parts=("build",))
    return FoundProgram(
        kind="make",
        name=place.short_name,
        settings=_own_size(value),
        parameters=_names_of(value),
    )


_OTHERS = "**"
_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        # Of some callables that are no Python, nothing is known.
        return {}


def _names_of(make: Any) -> tuple[str, ...]:
    """Parameters that can be given by name, those of any name last."""
    parameters = _parameters(make).values()
    # A batch_size whose default is no number says of no batch how large it is.
    sized = bool(_own_size(make))
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [p.name for p in parameters if p.kind in by_name and (sized or p.name != "batch_size")]
    any_other = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    return (*names, _OTHERS) if any_other else tuple(names)


def _own_size(make: Any) -> dict[str, Any]:
    """The setting "batch_size" of a make that has one with a default."""
    parameter = _parameters(make).get("batch_size")
    if parameter is None or not isinstance(parameter.default, int):
        return {}
    return {"batch_size": parameter.default}


def _named(module: ModuleType, name: str, place: ProgramPlace) -> Any:
    if hasattr(module, name):
        return getattr(module, name)
    close = difflib.get_close_matches(name, vars(module), n=1)
    hint = f"did you mean {close[0]!r}?" if close else _offers(module)
    raise OptionError(f"{place.title} has no {name!r}; {hint}")


def _offers(module: ModuleType) -> str:
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    return f"it defines {', '.join(own[:8])}" if own else "it defines no function"


@functools.cache
def _loaded(place: ProgramPlace) -> ModuleType:
    """The module of a place; one for each process."""
    return _run(place)


def _run(place: ProgramPlace) -> ModuleType:
    """Runs the file, as Python does where it is imported.

    Raises:
      OptionError: there is no such module, or the file ends its process.
    """
    if place.folder not in sys.path:
        sys.path.insert(0, place.folder)
    try:
        return _of_file(place) if place.is_file else _of_module(place)
    except SystemExit:
        raise OptionError(
            f"{place.title} ends its process while it is imported; put what it runs as a script "
            'under if __name__ == "__main__":'
        ) from None


def _of_file(place: ProgramPlace) -> ModuleType:
    name = place.short_name
    # A module of the same name, which something imported here may want, stays what it is.
    file = getattr(sys.modules.get(name), "__file__", place.source)
    if name in sys.stdlib_module_names or file != place.source:
        name = f"program_in_{name}"
    spec = importlib.util.spec_from_file_location(name, place.source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Where its classes and functions are looked up again, by AutoGraph and by pickle.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _of_module(place: ProgramPlace) -> ModuleType:
    sys.modules.pop(place.source, None)
    try:
        return importlib.import_module(place.source)
    except ModuleNotFoundError as error:
        if error.name and f"{place.source}.".startswith(f"{error.name}."):
            raise OptionError(
                f"there is no module {error.name!r} in {place.folder} or among what is installed"
            ) from None
        raise

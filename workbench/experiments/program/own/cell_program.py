"""Programs that are the code of a notebook's cell: it builds a step, and runs in child processes.

What the cell uses of the notebook, its functions and variables, travels with it; what the cell
defines, it makes anew each time.
"""

from __future__ import annotations

import dataclasses
import symtable
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import cloudpickle

from workbench.core.optimizations import Optimizations
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    usual_toggles,
)
from workbench.experiments.program.pickled import pickled
from workbench.experiments.program.program import Built, Program
from workbench.experiments.program.toggles import STAGE

_GIVEN = "optimizations"
_STEPS = ("step", "train_step", "model")
_EXPECTED = (
    "expected train_op, and loss if it has one, in the graph of a session; or step, a tf.function, "
    "and dataset; or model, a compiled Keras model, and dataset"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """The code of a cell, on its way to a child process.

    Attributes:
      source: its text; a line has the number that it has in the notebook.
      filename: what tracebacks call it.
      variables: pickled, what it uses of the notebook, by name.
    """

    source: str
    filename: str
    variables: bytes = dataclasses.field(repr=False)

    def run(self, **given: Any) -> dict[str, Any]:
        """Runs the cell; returns its variables.

        Args:
          given: variables that it has beside those of the notebook.
        """
        variables: dict[str, Any] = {
            "__name__": "__main__",
            **cloudpickle.loads(self.variables),
            **given,
        }
        exec(compile(self.source, self.filename, "exec"), variables)
        return variables


def program_of_cell(
    source: str, filename: str, notebook: Mapping[str, Any], name: str = "cell"
) -> AnyProgram:
    """The program of a cell, by what the cell defines.

    Args:
      source, filename: as of `Cell`.
      notebook: the variables of the notebook.
      name: of the program.

    Raises:
      OptionError: the cell is no Python, defines no step, or uses what cannot travel to another
        process.
    """
    try:
        table = symtable.symtable(source, filename, "exec")
    except SyntaxError as error:
        raise OptionError(
            f"notebook cell, line {error.lineno}: {type(error).__name__}: {error.msg}"
        ) from None
    defined = {symbol.get_name() for symbol in table.get_symbols() if _is_defined(symbol)}
    used = set(_used(table)) - defined
    step = next((each for each in _STEPS if each in defined), None)
    if "train_op" not in defined and (step is None or "dataset" not in defined):
        found = ", ".join(sorted(defined)[:8]) or "nothing"
        raise OptionError(f"the cell defines {found}; {_EXPECTED}")
    variables = _pickled({each: notebook[each] for each in sorted(used) if each in notebook})
    cell = Cell(source=source, filename=filename, variables=variables)
    reads = _GIVEN in used
    if "train_op" in defined:
        return Program(name=name, build=BuildCell(cell, frozenset(defined), reads))
    assert step is not None
    make = MakeReadingCell(cell, step) if reads else MakeCell(cell, step)
    return FunctionProgram(name=name, make=make)


def require_reads(program: AnyProgram, toggles: Sequence[Toggle]) -> None:
    """Requires that a cell reads the toggles that it is given.

    Raises:
      OptionError: it does not say `optimizations` at all.
    """
    build = program.build if isinstance(program, Program) else program.make
    reads = isinstance(build, MakeReadingCell) or getattr(build, "reads_optimizations", False)
    if toggles and not reads:
        name = toggles[0].name
        raise OptionError(
            f"the cell reads no toggle: write optimizations[{name!r}] where it is to act"
        )


def toggles_of_cell(program: AnyProgram) -> tuple[str, ...]:
    """What is measured of a cell where nobody says what."""
    toggles = usual_toggles(program)
    build = program.build if isinstance(program, Program) else None
    if isinstance(build, BuildCell) and not build.reads_optimizations:
        return tuple(each for each in toggles if each != STAGE)
    return toggles


@dataclasses.dataclass(frozen=True)
class BuildCell:
    """What `Program.build` is; in the cell, `optimizations` is what it is given.

    Attributes:
      cell: the cell.
      defined: names that it defines.
      reads_optimizations: whether it can have a stage of its own.
    """

    cell: Cell
    defined: frozenset[str]
    reads_optimizations: bool

    def __call__(self, optimizations: Optimizations) -> Built:
        found = self.cell.run(**{_GIVEN: optimizations})
        fields = [field.name for field in dataclasses.fields(Built)]
        own = {name: found[name] for name in fields if name in self.defined and name in found}
        if not {"labels", "scores"} <= own.keys():
            # A cell may use one of the names for something else.
            own = {name: own[name] for name in own if name not in ("labels", "scores")}
        if "train_op" not in own:
            raise OptionError("the cell has run without setting train_op; set it in every case")
        return Built(**own)


@dataclasses.dataclass(frozen=True)
class MakeCell:
    """What `FunctionProgram.make` is."""

    cell: Cell
    step: str

    def __call__(self) -> Any:
        return self._of(self.cell.run())

    def _of(self, found: Mapping[str, Any]) -> Any:
        missing = [name for name in (self.step, "dataset") if name not in found]
        if missing:
            raise OptionError(
                f"the cell has run without setting {missing[0]}; set it in every case"
            )
        return found[self.step], found["dataset"]


class MakeReadingCell(MakeCell):
    """The same of a cell that reads its setting."""

    def __call__(self, optimizations: Optimizations | None = None) -> Any:
        return self._of(self.cell.run(**{_GIVEN: optimizations or Optimizations()}))


def _is_defined(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _used(table: symtable.SymbolTable) -> Iterator[str]:
    """Names that are looked up among the variables of the notebook."""
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _used(inner)


def _pickled(variables: Mapping[str, Any]) -> bytes:
    try:
        return pickled(variables)
    except Exception as error:
        name = next((each for each in variables if not _travels(variables[each])), "")
        raise OptionError(
            f"the cell uses the variable {name!r} of the notebook, which cannot travel to a child "
            f"process ({type(error).__name__}: {error}); make it inside the cell"
        ) from None


def _travels(value: Any) -> bool:
    try:
        pickled(value)
    except Exception:
        return False
    return True

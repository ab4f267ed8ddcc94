"""The program that a user means: what is one already, or a function that makes one."""

from __future__ import annotations

import inspect
from typing import Any

from workbench.errors import OptionError
from workbench.experiments.program.function_program import (
    AnyProgram,
    FunctionProgram,
    require_program,
)
from workbench.experiments.program.own.graph_program import graph_program, is_graph
from workbench.experiments.program.program import Program
from workbench.experiments.serving.results import ServingComparison
from workbench.experiments.serving.served_model import ServedModel


def program_of(given: Any) -> AnyProgram:
    """A program, of what the panel was given.

    Args:
      given: a program; a function of optimizations that returns `wb.Built`; or a function of
        nothing, or of a batch size with a default, that returns (train_step, dataset); or a
        finished graph whose only train op an optimizer has made.

    Raises:
      OptionError: anything else; the message says what to give.
    """
    if isinstance(given, AnyProgram):
        return given
    _refuse_served(given)
    if is_graph(given):
        return graph_program(given)
    if not inspect.isfunction(given):
        _refuse_model(given)
        require_program(given)
    needed = [
        each
        for each in inspect.signature(given).parameters.values()
        if each.default is inspect.Parameter.empty
        and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) > 1:
        names = ", ".join(each.name for each in needed)
        raise OptionError(
            f"{given.__name__}({names}) needs {len(needed)} arguments; expected "
            "build(optimizations), which returns wb.Built(train_op=…), or make(), which returns "
            "(train_step, dataset) or (model, dataset)"
        )
    if needed:
        return Program(name=given.__name__, build=given)
    return FunctionProgram(name=given.__name__, make=given)


def _refuse_served(given: Any) -> None:
    if isinstance(given, ServedModel):
        raise OptionError(
            f"the panel measures steps of training, and {given.name!r} is a served model; call "
            'wb.serve_bench(program, ["auto_fused+inline_executor"]), whose result shows its '
            "latencies, requests and findings in the cell"
        )
    if isinstance(given, ServingComparison):
        raise OptionError(
            f"the panel measures steps of training, and this is a measurement of the served model "
            f"{given.program!r}; the value shows itself as the last line of a cell, and "
            "wb.write_report writes its page"
        )


def _refuse_model(given: Any) -> None:
    if hasattr(given, "train_step") and hasattr(given, "fit"):
        raise OptionError(
            f"the model {getattr(given, 'name', given)!r} cannot travel to a child process, where "
            "steps are run; make it in a function, with its data: "
            "def make(): … return model, dataset, then wb.Workbench(make)"
        )

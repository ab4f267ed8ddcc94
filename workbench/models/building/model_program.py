"""The program of a model's graph; loads no TensorFlow.

The graph of a model stands in a module of its own, which only a child process imports.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.core.optimizations import Optimizations
from workbench.errors import one_line
from workbench.experiments.program.origin import Origin
from workbench.experiments.program.program import PARTS, Built, Program
from workbench.models.building.model_options import ModelOptions

if TYPE_CHECKING:
    from workbench.models.building.graph_model import GraphModel


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
    path = None if options.data.generated else os.fspath(options.data.path)
    return Program(
        name=name,
        build=parts["build"],
        build_epoch=parts["build_epoch"],
        build_input=parts["build_input"],
        build_compute=parts["build_compute"],
        settings={"data": one_line(str(options.data.path)), "rows": options.data.rows, **said},
        origin=Origin(model=name, options={"data": path, "rows": options.data.rows, **said}),
    )


@dataclasses.dataclass(frozen=True)
class _Part:
    """One part of a model's graph, which is imported when the part is built."""

    graph: Callable[[], GraphModel]
    part: str
    options: ModelOptions

    def __call__(self, optimizations: Optimizations) -> Built:
        options = self.options
        if optimizations.batch_size:
            options = dataclasses.replace(options, batch_size=optimizations.batch_size)
        built: Built = getattr(self.graph(), self.part)(options, optimizations)
        return built

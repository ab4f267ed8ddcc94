"""Several build functions → one program with a toggle that chooses between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workbench.core.optimizations import Optimizations
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError
from workbench.experiments.program.program import Build, Built, Program
from workbench.experiments.program.toggles import listed

_BUILD = "build"


def builds_code(builds: Mapping[str, Build]) -> str:
    """The expression that names these functions, as in "{'old': build_a, 'new': build_b}"."""
    pairs = (f"{name!r}: {getattr(build, '__name__', '…')}" for name, build in builds.items())
    return f"{{{', '.join(pairs)}}}"


def builds_program(
    builds: Mapping[str, Build], toggles: Sequence[str | Optimizations | Toggle] | None
) -> tuple[Program, tuple[str | Optimizations | Toggle, ...]]:
    """A program that builds as one of several functions does, and what is measured of it.

    Args:
      builds: functions as `Program.build`, by name, the baseline first.
      toggles: what else is measured, as of `compare`; None nothing.

    Raises:
      OptionError: fewer than two functions, or a value that is none.
    """
    for name, function in builds.items():
        if not callable(function):
            raise OptionError(f"{name!r} is {function!r:.80}; expected a build function")
    toggle = Toggle(_BUILD, tuple(builds), help="Which of the functions builds the step.")
    functions = dict(builds)

    def build(optimizations: Optimizations) -> Built:
        return functions[optimizations[toggle]](optimizations)

    others = () if toggles is None else listed(toggles)
    return Program(name=" and ".join(builds), build=build), (toggle, *others)

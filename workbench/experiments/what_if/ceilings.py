"""ceilings() and speed_up(): what each kind of work could give at most, and work made faster."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from workbench.core.optimizations import Optimizations
from workbench.core.trace.trace import Trace
from workbench.core.what_if.faster import KINDS, Faster
from workbench.core.what_if.predictions import Predictions
from workbench.core.what_if.scenario import Scenario
from workbench.errors import OptionError
from workbench.experiments.program.function_program import AnyProgram
from workbench.experiments.what_if.predict import predicted


def ceilings(
    trace: Trace,
    program: AnyProgram | None = None,
    *,
    traced: Optimizations | None = None,
    progress: bool | Callable[[str], None] = True,
) -> Predictions:
    """What a step would take without one kind of work: the most that any change there could give.

    The kinds are "input" (delivering and decoding it), "ids" (making ids of it), "lookups"
    (embedding lookups, their gradients and updates) and "dense" (everything else). Simulated from
    the trace; `measured_ceilings` measures the same.

    Args:
      trace, program, traced, progress: as of `predict`.

    Raises:
      OptionError, TraceError, RunError: as `predict`.
    """
    before = Scenario(optimizations=traced or Optimizations())
    return predicted(trace, program, ceiling_scenarios(before), traced=traced, progress=progress)


def ceiling_scenarios(traced: Scenario) -> list[Scenario]:
    """The traced setting without each kind of work."""
    return [dataclasses.replace(traced, faster=(Faster(work=kind),)) for kind in KINDS]


def speed_up(
    trace: Trace,
    work: Mapping[str, float],
    program: AnyProgram | None = None,
    *,
    traced: Optimizations | None = None,
    progress: bool | Callable[[str], None] = True,
) -> Predictions:
    """What a step would take if some of its work were faster.

    Args:
      trace, program, traced, progress: as of `predict`.
      work: how many times as fast, by what: a kind of work as in `ceilings`, an op family such as
        "Dense matmul", or node names. In these, `*` stands for any text. To leave work out, use
        `float("inf")`. Each alone is predicted and, of several, all together.

    Raises:
      OptionError: no work, a number not above 0, or work that the graph has none of.
      TraceError, RunError: as `predict`.
    """
    if not work:
        raise OptionError("work is empty; expected at least one, such as {'lookups': 2}")
    changes = tuple(Faster(work=what, times=times) for what, times in work.items())
    each = [(change,) for change in changes]
    scenarios = [
        Scenario(optimizations=traced or Optimizations(), faster=some)
        for some in dict.fromkeys([*each, changes])
    ]
    return predicted(trace, program, scenarios, traced=traced, progress=progress)

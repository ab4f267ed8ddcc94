"""Which stages a graph has: their prefetch runners, noted as they are built."""

from __future__ import annotations

import weakref
from typing import Any

from workbench.core.options import StageOptions
from workbench.core.session.prefetch_runner import PrefetchRunner
from workbench.core.staging.error_codes import with_codes

_RUNNERS: weakref.WeakKeyDictionary[Any, list[PrefetchRunner]] = weakref.WeakKeyDictionary()


def register_runner(graph: Any, runner: PrefetchRunner) -> None:
    """Notes that sessions of `graph` have this stage to run. A collection would end in every
    exported meta graph, where a runner cannot be read back."""
    _RUNNERS.setdefault(graph, []).append(runner)


def runners(graph: Any) -> tuple[PrefetchRunner, ...]:
    """The stages built in `graph` so far, in order."""
    return tuple(_RUNNERS.get(graph, ()))


def stage_options(graph: Any) -> dict[str, StageOptions]:
    """By name of each put, the options of its stage, with integer codes for exceptions."""
    return {put: with_codes(runner.options) for runner in runners(graph) for put in runner.puts}

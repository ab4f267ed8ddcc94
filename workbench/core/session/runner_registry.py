"""Which stages a graph has: their prefetch runners, noted as they are built or imported."""

from __future__ import annotations

import weakref
from typing import Any

from workbench.core.options import StageOptions
from workbench.core.session.imported_stages import imported_runners
from workbench.core.session.prefetch_runner import PrefetchRunner
from workbench.core.staging.error_codes import with_codes

_RUNNERS: weakref.WeakKeyDictionary[Any, list[PrefetchRunner]] = weakref.WeakKeyDictionary()
# How many ops a graph had when its imported stages were last sought.
_SOUGHT: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()


def register_runner(graph: Any, runner: PrefetchRunner) -> None:
    """Notes that sessions of `graph` have this stage to run."""
    _RUNNERS.setdefault(graph, []).append(runner)


def runners(graph: Any) -> tuple[PrefetchRunner, ...]:
    """The stages of `graph` so far: those built in it, in order, then those imported into it.

    Raises:
      UnsupportedError: an imported stage cannot be run.
    """
    # The length of the list of ops: `version` counts changes of attributes, too.
    count = len(graph.get_operations())
    if _SOUGHT.get(graph) != count:
        known = _RUNNERS.setdefault(graph, [])
        known += imported_runners(graph, known)
        _SOUGHT[graph] = count
    return tuple(_RUNNERS.get(graph, ()))


def stage_options(graph: Any) -> dict[str, StageOptions]:
    """By name of each put, the options of its stage, with integer codes for exceptions."""
    return {put: with_codes(runner.options) for runner in runners(graph) for put in runner.puts}

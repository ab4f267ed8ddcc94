"""serve_bench(): a served model with its settings, under several loads → ServingComparison."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Sequence
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.core.options import require_at_least
from workbench.core.toggles.toggle import Toggle
from workbench.errors import OptionError, RunError
from workbench.experiments.comparison.environment import machine
from workbench.experiments.measurement.amounts import seconds_of
from workbench.experiments.measurement.progress import Progress
from workbench.experiments.measurement.time_budget import TimeBudget
from workbench.experiments.program.variant import Variant
from workbench.experiments.serving.loads import loads_of
from workbench.experiments.serving.p99_limit import NONE, P99Limit
from workbench.experiments.serving.points import Load, LoadPoint, RateAtLimit
from workbench.experiments.serving.receipts import receipt
from workbench.experiments.serving.results import Receipt, ServedVariant, ServingComparison
from workbench.experiments.serving.rounds import OPEN_CLIENTS, Rounds, Schedule, schedule
from workbench.experiments.serving.served_model import ServedModel
from workbench.experiments.serving.server.messages import (
    AnswerSample,
    Loaded,
    LoadModel,
    MakeRequests,
    RequestSet,
)
from workbench.experiments.serving.variants import serving_variants
from workbench.experiments.worker.process import Worker, started_workers
from workbench.number_words import counted, size

_CHILD = "workbench.experiments.serving.server.child:main"
# Different requests of each number of rows, and how many of them are compared.
_REQUESTS, _COMPARED = 128, 16
# A model may be large, and is loaded once a session.
_LOAD_S = 60.0
DEFAULT_CLIENTS = (1, 8, 32)


def serve_bench(
    program: ServedModel,
    toggles: Sequence[str | Optimizations | Toggle] | str = (),
    *,
    baseline: Optimizations | None = None,
    clients: Sequence[int] = DEFAULT_CLIENTS,
    rates: Sequence[float] = (),
    p99_limit: str | float | None = "3x",
    rounds: int = 5,
    budget: float | str = "2min",
    seed: int = 0,
    command: str = "",
    progress: bool | Callable[[str], None] = True,
) -> ServingComparison:
    """Measures how fast a model answers, as it is and with other settings, side by side.

    Each setting is loaded in a child process of its own, from the SavedModel, by TensorFlow's C
    API. Clients are threads there: they send requests that lie ready as tensors. So no network and
    no serialization is part of a latency. The blocks of all settings take turns.

    Args:
      program: what `served` made.
      toggles: names such as "auto_fused+inline_executor" or "sessions=2", settings, or toggles of
        which each other choice is measured. None at all measures the baseline alone.
      baseline: the setting that the others are compared with; None is all off.
      clients: how many clients wait for answers, a load each. One client alone is always measured.
      rates: requests a second of open loops, a load each.
      p99_limit: what p99 may be in the search for the highest rate: "3x" is three times the median
        latency of one client of the baseline, and a time such as "5ms" is itself. Numbers are
        seconds. None searches no rate.
      rounds: how often each setting has each load; intervals need two, and five say something.
      budget: time for all of it; short blocks may exceed it, and what is expected is said first.
      seed: of the arrivals of open loops.
      command: what reproduces it, for the report.
      progress: True shows lines on stderr, False none, a function is called with each.

    Returns:
      The ServingComparison; its first variant is the baseline.

    Raises:
      OptionError: an unknown toggle, one that no served model can have, a number out of range, or
        a signature that the SavedModel lacks.
      DataError: the folder holds no SavedModel, or a request does not fit it.
      RunError: a child died, or every request failed.
      KeyboardInterrupt: after Ctrl-C, with the words to show; no process is left.
    """
    if not isinstance(program, ServedModel):
        raise OptionError(
            f"program is a {type(program).__name__}; expected what wb.served(…) returns"
        )
    variants = serving_variants(toggles, baseline)
    loads = loads_of(clients, rates)
    limit = P99Limit.of(p99_limit)
    require_at_least("rounds", rounds, 1)
    require_at_least("seed", seed, 0)
    spent, shown = TimeBudget(seconds_of(budget)), Progress(progress)
    taken_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    try:
        shown.phase(f"Starting {len(variants)} child processes")
        with started_workers(
            [(variant.label, program) for variant in variants],
            [variant.environment for variant in variants],
            child=_CHILD,
        ) as workers:
            opened = _opened(program, variants, workers, shown)
            plan = _plan(opened, loads, rounds, spent.left_s(), searches=limit is not None)
            shown.phase(_expected(plan))
            points, at_limit = _run(Rounds(workers, plan, shown, seed), opened, limit)
    finally:
        shown.end()
    return ServingComparison(
        program=program.name,
        signature=program.signature,
        requests_from=opened.requests.made_from,
        variants=tuple(
            _variant(variant, opened.loaded[at], points[at], [rates[at] for rates in at_limit])
            for at, variant in enumerate(variants)
        ),
        receipts=opened.receipts,
        rounds=rounds,
        environment=machine(),
        settings=_settings(plan, limit, seed, seconds_of(budget), spent.spent_s()),
        command=command,
        taken_at=taken_at,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Opened:
    """What is known once all models are loaded."""

    requests: RequestSet
    loaded: list[Loaded]
    receipts: tuple[Receipt, ...]


def _opened(
    program: ServedModel, variants: Sequence[Variant], workers: Sequence[Worker], shown: Progress
) -> _Opened:
    """Makes the requests in the baseline's child, loads all models, compares their answers."""
    shown.phase("Making the requests")
    requests = workers[0].call(MakeRequests(rows=program.rows, count=_REQUESTS))
    shown.phase("Loading the model, and warming it up")
    for variant, worker in zip(variants, workers, strict=True):
        worker.send(LoadModel(optimizations=variant.optimizations, requests=requests))
    loaded = [worker.receive(_LOAD_S) for worker in workers]
    shown.phase("Comparing answers")
    receipts: list[Receipt] = []
    for rows, of_rows in requests.by_rows.items():
        sample = AnswerSample(rows=rows, count=min(_COMPARED, len(of_rows)))
        first, *others = [worker.call(sample) for worker in workers]
        receipts += [
            receipt(variant.label, rows, answers, first)
            for variant, answers in zip(variants[1:], others, strict=True)
        ]
    return _Opened(requests=requests, loaded=loaded, receipts=tuple(receipts))


def _plan(
    opened: _Opened, loads: Sequence[Load], rounds: int, left_s: float, *, searches: bool
) -> Schedule:
    """How the time that is left is divided."""
    rows = tuple(opened.requests.by_rows)
    return schedule(
        [(load, size) for size in rows for load in loads],
        variants=len(opened.loaded),
        searched_rows=len(rows) if searches else 0,
        rounds=rounds,
        budget_s=left_s,
    )


def _run(
    run: Rounds, opened: _Opened, limit: P99Limit | None
) -> tuple[list[list[LoadPoint]], list[list[RateAtLimit]]]:
    """The points of each variant; for each number of rows, the rate at the limit of each."""
    points = run.run_loads()
    if limit is None:
        return points, []
    return points, [_searched(run, rows, limit, points) for rows in opened.requests.by_rows]


def _settings(
    plan: Schedule, limit: P99Limit | None, seed: int, budget_s: float, took_s: float
) -> dict[str, Any]:
    """What a reader must know of the measurement."""
    return {
        "block": f"{plan.block_s:.2g} s",
        "requests": f"{_REQUESTS} different ones of each number of rows, sent in turn",
        "p99_limit": limit.given if limit else NONE,
        "open loop": f"at most {OPEN_CLIENTS} requests at one time",
        "seed": seed,
        "budget_s": budget_s,
        "took": f"{took_s:.0f} s",
    }


def _searched(
    run: Rounds, rows: int, limit: P99Limit, points: Sequence[Sequence[LoadPoint]]
) -> list[RateAtLimit]:
    """The rate at the limit of each variant.

    Raises:
      RunError: no client got an answer, so that there is no rate to begin from.
    """
    of_rows = [[point for point in of if point.rows == rows] for of in points]
    unloaded = of_rows[0][0].latency
    most = [
        max((p.per_s.value for p in of if p.load.rate is None and p.per_s), default=0.0)
        for of in of_rows
    ]
    if unloaded is None or not all(most):
        raise RunError("in a block no request was answered, so no rate at a limit can be searched")
    return run.search(rows, limit.in_ns(unloaded.p50_ns.value), most)


def _variant(
    variant: Variant,
    loaded: Loaded,
    points: Sequence[LoadPoint],
    at_limit: Sequence[RateAtLimit],
) -> ServedVariant:
    notes = []
    if loaded.sessions > 1:
        notes.append(
            f"{variant.label}: each of its {loaded.sessions} sessions has variables of its own, "
            f"since TensorFlow's sessions share none; together they take "
            f"{size(loaded.memory_bytes)}."
        )
    return ServedVariant(
        label=variant.label,
        optimizations=variant.optimizations,
        points=tuple(points),
        rates_at_limit=tuple(at_limit),
        memory_bytes=loaded.memory_bytes,
        sessions=loaded.sessions,
        steps_at_once=loaded.steps_at_once,
        fused_ops=loaded.fused_ops,
        notes=tuple(notes),
    )


def _expected(plan: Schedule) -> str:
    """How long the measurement will take, before it begins."""
    return (
        f"About {plan.seconds:.0f}\u00a0s: {counted(plan.rounds, 'round')} of blocks of "
        f"{plan.block_s:.2g}\u00a0s"
    )

"""Sessions of checks: opened in several workers, run beside each other, and closed again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.experiments.measurement.time_budget import steps_within, warm_step_s
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.wire.messages import Close, Open, RunSteps, Steps

# Steps whose time says how many more fit.
_FIRST_STEPS = 10


def run_steps(
    workers: Sequence[Worker],
    sessions: Sequence[str],
    steps: int,
    more: Sequence[int],
    fetch: str,
    seconds: float,
) -> list[Steps]:
    """Runs steps in all workers at once, fewer of them where they do not fit in the seconds.

    Args:
      steps: most of them in each.
      more: what each runs beside them in any case.
    """
    first = min(_FIRST_STEPS, steps)
    begun = run_all(workers, sessions, [first] * len(workers), fetch)
    step_s = max(warm_step_s(ran) for ran in begun)
    fit = steps_within(seconds - max(more) * step_s, step_s, least=first, most=steps)
    left = [0 if ran.ended else fit - first + n for ran, n in zip(begun, more, strict=True)]
    rest = run_all(workers, sessions, left, fetch)
    return [
        Steps(
            ends_ns=np.concatenate([a.ends_ns, b.ends_ns[1:]]),
            values=np.concatenate([a.values, b.values]) if len(b.values) else a.values,
            ended=a.ended or b.ended,
            # Where a session has dropped its oldest steps, those before them say nothing either.
            scored=b.scored if len(b.scored) < len(b.values) else (*a.scored, *b.scored),
        )
        for a, b in zip(begun, rest, strict=True)
    ]


def run_all(
    workers: Sequence[Worker], sessions: Sequence[str], counts: Sequence[int], fetch: str
) -> list[Steps]:
    """Runs so many steps in each worker, in all at once."""
    for worker, session, count in zip(workers, sessions, counts, strict=True):
        worker.send(RunSteps(session=session, steps=count, fetch=fetch))
    return [worker.receive() for worker in workers]


def close_session(workers: Sequence[Worker], session: str) -> None:
    """Closes a session in all workers at once."""
    for worker in workers:
        worker.send(Close(session=session))
    for worker in workers:
        worker.receive()


def open_session(
    worker: Worker,
    session: str,
    part: str,
    variant: Variant,
    *,
    rounding: int = 0,
    scored: bool = False,
) -> None:
    """Has a worker open a session; what it answers is still to be received.

    The session has the plan of the measured one. Another part, or one whose scores are read, is
    another graph, with a plan of its own.
    """
    planned = variant.plan is not None and part == "build" and not scored
    worker.send(
        Open(
            session=session,
            part=part,
            optimizations=variant.optimizations,
            plan=variant.plan.to_json() if variant.plan and planned else None,
            rounding=rounding,
            scored=scored,
        )
    )

"""Stragglers among the workers of a cluster: none, a rotating one, or always the same task."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from workbench.core.cluster.step_split import step_split
from workbench.core.trace.trace import Trace
from workbench.number_words import share

# Of rounds fewer than this nothing is said.
_LEAST_ROUNDS = 8
# A worker straggles in a round where its step takes this much longer than the median of the others.
_LONGER = 1.2
# Rounds with a straggler are the rule, not an accident, from this part of them on.
_OFTEN = 0.2
# So seldom may chance alone make one worker the slowest as often.
_CHANCE = 0.01

NONE, SAME, ROTATING, UNKNOWN = "none", "same", "rotating", "unknown"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Straggler:
    """The verdict.

    Attributes:
      kind: NONE, SAME (one task again and again), ROTATING (now one, now another), or UNKNOWN.
      task: which, where it is always the same; else "".
      rounds: rounds of steps that were compared.
      slowest: in how many of them each worker straggled.
      words: the same as a sentence.
    """

    kind: str
    task: str
    rounds: int
    slowest: Mapping[str, int]
    words: str


def straggler(trace: Trace) -> Straggler:
    """The verdict of a merged trace; time in which a step waits for others' tokens is left out."""
    split = step_split(trace)
    own = split.assign(own_ns=split["dur_ns"] - split["token_ns"])
    return straggler_of({str(name): part["own_ns"] for name, part in own.groupby("client")})


def straggler_of(own_ns: Mapping[str, pd.Series | np.ndarray]) -> Straggler:
    """The verdict of steps' durations.

    Round k is the k-th traced step of each worker. A worker straggles in it where its step is the
    longest, by a fifth more than the median of the others. If rounds with a straggler are less
    than a fifth: none. Else one task is named where chance alone, with all workers alike, would
    make one straggle that often in less than one case of a hundred; otherwise it rotates.

    Args:
      own_ns: of each worker the durations of its steps, in their order.
    """
    workers = sorted(own_ns)
    rounds = min((len(own_ns[name]) for name in workers), default=0)
    if len(workers) < 2 or rounds < _LEAST_ROUNDS:
        return Straggler(
            kind=UNKNOWN,
            task="",
            rounds=rounds,
            slowest=dict.fromkeys(workers, 0),
            words=(
                f"No verdict on stragglers: {len(workers)} workers and {rounds} rounds; it takes "
                f"2 workers and {_LEAST_ROUNDS} rounds."
            ),
        )
    table = np.stack([np.asarray(own_ns[name], np.int64)[:rounds] for name in workers])
    counts = _straggled(table)
    slowest = dict(zip(workers, counts.tolist(), strict=True))
    with_one = int(counts.sum())
    most = workers[int(counts.argmax())]
    of_all = f"{share(with_one / rounds)} of {rounds} rounds"
    if with_one < _OFTEN * rounds:
        kind, words = NONE, f"No straggler: a step is much longer than others in {of_all}."
    elif len(workers) * _at_least(slowest[most], with_one, 1 / len(workers)) < _CHANCE:
        kind = SAME
        words = (
            f"{most} straggles: in {of_all} one step is much longer than the others, and "
            f"{slowest[most]} of {with_one} times it is this task's."
        )
    else:
        kind = ROTATING
        each = ", ".join(f"{name} {count}" for name, count in slowest.items())
        words = (
            f"A rotating straggler: in {of_all} one step is much longer than the others, now one "
            f"task's, now another's ({each})."
        )
    task = most if kind == SAME else ""
    return Straggler(kind=kind, task=task, rounds=rounds, slowest=slowest, words=words)


def _straggled(table: np.ndarray) -> np.ndarray:
    """How often each worker, a row, straggled."""
    slowest = table.argmax(axis=0)
    rounds = np.arange(table.shape[1])
    others = np.array([np.median(np.delete(table[:, k], slowest[k])) for k in rounds])
    much = table[slowest, rounds] > _LONGER * others
    return np.bincount(slowest[much], minlength=len(table))


def _at_least(count: int, of: int, chance: float) -> float:
    """Chance that something of this chance comes so many times of so many, or more often."""
    return sum(
        math.comb(of, k) * chance**k * (1 - chance) ** (of - k) for k in range(count, of + 1)
    )

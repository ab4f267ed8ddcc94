"""Dispatch: how an executor hands the nodes of a step to threads, as far as a step's time goes."""

from __future__ import annotations

import dataclasses

from workbench.core.options import ExecutorPolicy

# TensorFlow's executor gives a node to another thread when it has taken more than 8,000 cycles:
# 3 µs on a core of 2.7 GHz.
_SHORT_NS = 3_000.0
# The cost model executor keeps nodes up to this on a thread, as many as take so long at a time.
_BATCH_NS = 5_000.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dispatch:
    """How an executor hands nodes to threads.

    Attributes:
      op_ns: what it takes between two ops of one thread.
      serial: a run's nodes all run on the thread that began it, not on the inter-op pool.
      calls: the thread that begins a run is one of its threads, and polls where it has no node:
        nothing wakes it.
      by_path: of the nodes that are ready, the one with the longest path behind it goes first, to
        whichever thread is free.
      short_ns: nodes up to this stay on the thread that made them ready.
    """

    op_ns: float
    serial: bool = False
    calls: bool = False
    by_path: bool = False
    short_ns: float = _SHORT_NS


# Between two ops stock's executor takes 150 to 660 ns, untraced: chains, wide graphs, a DLRM of 441
# nodes, 1 and 2 threads. Inline takes a third of it: 86 ns for a scalar op of a chain, where stock
# takes 280.
NORMAL = Dispatch(op_ns=300.0)
INLINE = Dispatch(op_ns=100.0, serial=True, calls=True)
COST_MODEL = Dispatch(op_ns=300.0, calls=True, by_path=True, short_ns=_BATCH_NS)


def dispatch_of(policy: ExecutorPolicy | str | None) -> Dispatch:
    """How a policy dispatches; None is TensorFlow's own executor."""
    if policy == ExecutorPolicy.INLINE:
        return INLINE
    return COST_MODEL if policy == ExecutorPolicy.COST_MODEL else NORMAL

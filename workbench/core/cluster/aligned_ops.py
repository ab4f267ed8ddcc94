"""Ops of several tasks, each by its own clock → all by the clock of the task that ran the steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd

from workbench.core.cluster.clocks import ClockOffset, Messages, clock_offset
from workbench.core.graph.tasks import is_ps, tasks_of
from workbench.core.trace.op_columns import OpColumns
from workbench.errors import TraceError


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class AlignedOps:
    """Ops and transfers on one clock.

    Attributes:
      ops: the same as columns; ops of tasks that could not be aligned are left out.
      task: whose clock it is; "" where all ops are of one task, which needs no alignment.
      clocks: of each other task its offset against that.
      refused: of each task that could not be aligned, why.
      left_out: how many ops each of these had.
    """

    ops: OpColumns
    task: str = ""
    clocks: Mapping[str, ClockOffset] = dataclasses.field(default_factory=dict)
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)
    left_out: Mapping[str, int] = dataclasses.field(default_factory=dict)


def align_ops(ops: OpColumns) -> AlignedOps:
    """Aligns the clocks of all tasks whose ops these are.

    The task that ran the steps is the one with most ops that is no parameter server.
    """
    task = tasks_of(ops.nodes["device"])
    ran = np.bincount(ops.node, minlength=len(task))
    # A device without a task, as of a function's ops, is of the task that ran the steps.
    named = sorted(set(task.tolist()) - {""})
    count = {name: int(ran[task == name].sum()) for name in named}
    if len(count) < 2:
        return AlignedOps(ops=ops)
    main = max(count, key=lambda name: (not is_ps(name), count[name]))
    clocks: dict[str, ClockOffset] = {}
    refused: dict[str, str] = {}
    for other in [name for name in count if name != main]:
        try:
            clocks[other] = clock_offset(
                _messages(ops, task, other, main), _messages(ops, task, main, other), task=other
            )
        except TraceError as error:
            refused[other] = str(error)
    return AlignedOps(
        ops=_shifted(_without(ops, task, list(refused)), task, clocks),
        task=main,
        clocks=clocks,
        refused=refused,
        left_out={name: count[name] for name in refused},
    )


def lost_transfers(transfers: pd.DataFrame, steps: int) -> int:
    """How many transfers some of the first `steps` runs lack that most of them have."""
    of_steps = transfers[transfers["run"] < steps]
    seen = of_steps.groupby(["node", "source"])["run"].nunique()
    usual = seen[seen > steps / 2]
    return int(steps * len(usual) - usual.sum())


def _messages(ops: OpColumns, task: np.ndarray, sender: str, receiver: str) -> Messages:
    transfers = ops.transfers[ops.transfers["sent_ns"] >= 0]
    source, node = (transfers[name].to_numpy(np.int64) for name in ("source", "node"))
    between = (task[source] == sender) & (task[node] == receiver)
    return Messages(
        sent_ns=transfers["sent_ns"].to_numpy(np.int64)[between],
        received_ns=transfers["end_ns"].to_numpy(np.int64)[between],
    )


def _without(ops: OpColumns, task: np.ndarray, names: list[str]) -> OpColumns:
    if not names:
        return ops
    known = ~np.isin(task, names)
    transfers = ops.transfers
    kept = known[transfers["source"].to_numpy(int)] & known[transfers["node"].to_numpy(int)]
    return dataclasses.replace(ops.rows(known[ops.node]), transfers=transfers[kept])


def _shifted(ops: OpColumns, task: np.ndarray, clocks: Mapping[str, ClockOffset]) -> OpColumns:
    ahead = np.array([clocks[name].offset_ns if name in clocks else 0 for name in task], np.int64)
    of_op = ahead[ops.node]
    transfers = ops.transfers
    sender = ahead[transfers["source"].to_numpy(np.int64)]
    receiver = ahead[transfers["node"].to_numpy(np.int64)]
    sent = transfers["sent_ns"].to_numpy(np.int64)
    sent = np.where(sent < 0, -1, sent - sender)
    end = transfers["end_ns"].to_numpy(np.int64) - receiver
    # TensorFlow takes the sender's clock for the begin, as far as it fits the receiver's.
    start = np.clip(transfers["start_ns"].to_numpy(np.int64) - receiver, np.minimum(sent, end), end)
    return dataclasses.replace(
        ops,
        scheduled_ns=ops.scheduled_ns - of_op,
        start_ns=ops.start_ns - of_op,
        end_ns=ops.end_ns - of_op,
        transfers=transfers.assign(sent_ns=sent, start_ns=start, end_ns=end),
    )

"""Executed ops as columns, the form in which every tracer hands them over."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd

NODE_COLUMNS = ["name", "op", "device"]
# Of `OpColumns.transfers`.
TRANSFER_COLUMNS = ["run", "node", "source", "bytes", "sent_ns", "start_ns", "end_ns"]


def no_transfers() -> pd.DataFrame:
    """The transfers of ops of one task."""
    return pd.DataFrame({name: np.zeros(0, np.int64) for name in TRANSFER_COLUMNS})


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OpColumns:
    """The ops that recorded runs executed, whichever tracer saw them; one row each, in any order.

    Attributes:
      run: int64 [ops], number of the run in the list of runs that were recorded.
      node: int64 [ops], rows of `nodes`.
      thread: int64 [ops], the operating system's id of the thread; 0 where it is not known.
      scheduled_ns, start_ns, end_ns: int64 [ops], of the wall clock; in this order.
      nodes: name, op (type) and device, each combination once; and source, where it is known.
      edges: int64 [edges, 3], rows of `nodes` that run one after the other, and 1 for a control
        edge; none where the tracer does not see the graph.
      bytes: int64 [ops, 2], memory of the outputs that an op made, and of those that are memory of
        its inputs; None where the tracer does not see it.
      run_of_step: the run of each of TensorFlow's step ids, where the tracer knows them.
      thread_names: names of threads by id, where the tracer knows them.
      transfers: tensors that one task sent another, one row each: run, node and source (rows of
        `nodes`: the tensor where it was received, and the op that made it), bytes, sent_ns (end of
        that op, -1 where it is not known), start_ns and end_ns of its receipt.
    """

    run: np.ndarray
    node: np.ndarray
    thread: np.ndarray
    scheduled_ns: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    nodes: pd.DataFrame
    edges: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros((0, 3), np.int64))
    bytes: np.ndarray | None = None
    run_of_step: Mapping[int, int] = dataclasses.field(default_factory=dict)
    thread_names: Mapping[int, str] = dataclasses.field(default_factory=dict)
    transfers: pd.DataFrame = dataclasses.field(default_factory=no_transfers)

    def rows(self, which: np.ndarray) -> OpColumns:
        """These ops, by row numbers or a mask; the nodes stay."""
        if which.dtype == bool and which.all():
            return self
        names = ["run", "node", "thread", "scheduled_ns", "start_ns", "end_ns"]
        names += ["bytes"] * (self.bytes is not None)
        return dataclasses.replace(self, **{name: getattr(self, name)[which] for name in names})

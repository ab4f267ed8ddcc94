"""Learned costs: what cost-model executors have measured of each node; saved, read, given again.

Costs live in the native executors of this process; here they are a frozen value.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench import _native
from workbench.display import Displayed
from workbench.errors import DataError, OptionError
from workbench.files.atomic_file import replacing
from workbench.files.saved_columns import NoParquetError, opened
from workbench.files.saved_values import is_file

_FORMAT_VERSION = 1
_VERSION, _KIND = b"format_version", b"workbench_learned_costs"
# The native side's columns, in its order.
_COLUMNS = {
    "executor": "int64",
    "learned": "bool",
    "steps": "int64",
    "node": "str",
    "op": "str",
    "device": "str",
    "count": "int64",
    "average_ns": "int64",
    "critical_path_ns": "int64",
    "slack_ns": "int64",
    "batch": "int64",
    "order": "str",
}


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LearnedCosts(Displayed):
    """What the live cost-model executors of a process had learned at some moment.

    Attributes:
      nodes: one row per node of each executor.
        - executor: a number. There is one executor per session, device and set of feeds and
          fetches.
        - learned: whether it schedules by costs, its own or given ones.
        - steps: how many were measured.
        - node, op, device.
        - count: runs of the node that were measured.
        - average_ns: of a run; 0 where nothing is known. The waiting of an asynchronous kernel is
          not counted.
        - critical_path_ns: all of the node's runs in a step, and the longest path from it to an
          end.
        - slack_ns: how much longer it could take before the longest path does.
        - batch: the dispatched task, from 0, in which it ran in the last step scheduled by costs;
          -1 is unknown.
        - order: by which its executor runs nodes once it has learned; "" before. It is "by cost",
          or "as ready", as stock TensorFlow, where that was about as fast. It is "trying" while
          both take turns.

    Raises:
      DataError: a column is missing, or holds what it cannot hold.
    """

    nodes: pd.DataFrame

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", _shaped(self.nodes))

    def __repr__(self) -> str:
        executors = self.executors()
        return (
            f"LearnedCosts({len(executors)} executors, {int(executors['learned'].sum())} of them "
            f"have learned, {len(self.nodes)} nodes)"
        )

    def executors(self) -> pd.DataFrame:
        """One row per executor: learned, order, steps, nodes, critical_path_ns (its length) and
        work_ns (sum of all runs in a step); the index is its number."""
        work = self.nodes["average_ns"] * _runs_of_a_step(self.nodes)
        groups = self.nodes.assign(work=work.round().astype("int64")).groupby("executor", sort=True)
        return groups.agg(
            learned=("learned", "first"),
            order=("order", "first"),
            steps=("steps", "first"),
            nodes=("node", "size"),
            critical_path_ns=("critical_path_ns", "max"),
            work_ns=("work", "sum"),
        )

    def average_ns(self) -> dict[str, int]:
        """Average of each node by name, over the executors that know costs, by their runs."""
        learned = self.nodes[self.nodes["learned"]]
        # Given costs come without a run; a node that never ran costs nothing, but is known.
        without = (learned["count"] == 0) & (learned["average_ns"] > 0)
        runs = (learned["count"] + without).to_numpy(float)
        sums = pd.DataFrame({"node": learned["node"], "runs": runs})
        sums["ns"] = runs * learned["average_ns"].to_numpy(float)
        sums = sums.groupby("node", sort=False).sum()
        average = np.rint(sums["ns"] / np.maximum(sums["runs"], 1)).astype("int64")
        return dict(zip(sums.index.tolist(), average.tolist(), strict=True))

    def per_step_ns(self) -> dict[str, int]:
        """The same of all runs in a step: more than the average for nodes of a loop."""
        learned = self.nodes[self.nodes["learned"]]
        most = _runs_of_a_step(learned).groupby(learned["node"], sort=False).max()
        return {node: round(ns * most[node]) for node, ns in self.average_ns().items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a Parquet file, whole or not at all; `load_learned_costs` reads it."""
        table = pa.Table.from_pandas(self.nodes, preserve_index=False)
        notes = {_VERSION: str(_FORMAT_VERSION).encode(), _KIND: b""}
        with replacing(path) as part:
            pq.write_table(table.replace_schema_metadata(notes), part, compression="zstd")


def learned_costs() -> LearnedCosts:
    """What the live cost-model executors of this process have learned; without one, no rows.

    Raises:
      NativeError: the native library is missing or was built for another TensorFlow.
    """
    _native.require_executors("learned_costs")
    text = _native.taken_text("workbench_learned_costs")
    # Names are never quoted, and none is a missing value.
    options: dict[str, Any] = {"sep": "\t", "quoting": csv.QUOTE_NONE, "keep_default_na": False}
    table = pd.read_csv(io.StringIO(text), dtype=str, **options) if text else pd.DataFrame()
    if "learned" in table:
        table["learned"] = table["learned"] == "1"
    return LearnedCosts(table if len(table.columns) else _no_rows())


def load_learned_costs(path: str | os.PathLike[str]) -> LearnedCosts:
    """Reads what `LearnedCosts.save` wrote.

    Raises:
      DataError: there is no such file, it holds no learned costs, or is of another format.
    """
    name = os.fspath(path)
    if not is_file(path):
        raise DataError(f"there is no file {name!r}; expected one that `LearnedCosts.save` wrote")
    try:
        with opened(path) as file:
            _require_version(name, file.notes)
            return LearnedCosts(file.read([each for each in file.names if each in _COLUMNS]))
    except NoParquetError as error:
        raise DataError(
            f"{name!r} holds no learned costs: it is no Parquet file, or damaged "
            f"({error}); expected one that `LearnedCosts.save` wrote"
        ) from error
    except DataError as error:
        if name in str(error):
            raise
        raise DataError(f"{name!r} is damaged: {error}; save or copy it again") from error


def _require_version(name: str, notes: Mapping[bytes, bytes]) -> None:
    if _KIND not in notes:
        raise DataError(
            f"{name!r} holds no learned costs; expected a file that `LearnedCosts.save` wrote"
        )
    version = notes.get(_VERSION, b"").decode(errors="replace")
    if version != str(_FORMAT_VERSION):
        raise DataError(
            f"{name!r}: Format {version}; this Workbench reads {_FORMAT_VERSION}. Update it."
        )


def preload_costs(costs: LearnedCosts | None) -> None:
    """Gives costs to the cost-model executors that are made from now on in this process.

    An executor that finds at least 90 % of its nodes among them, by name, uses them from its first
    step, and still learns its own. Sessions that ran before keep what they have.

    Args:
      costs: what was learned, in this process or another; None forgets what was given.

    Raises:
      OptionError: no executor had learned anything when the costs were taken.
      NativeError: the native library is missing or was built for another TensorFlow.
    """
    averages = costs.average_ns() if costs is not None else {}
    per_step = costs.per_step_ns() if costs is not None else {}
    if costs is not None and not averages:
        raise OptionError(
            f"{costs!r} holds no costs to give: run an executor past its stop_step first, and take "
            "learned_costs() then"
        )
    lines = "".join(f"{node}\t{ns}\t{per_step[node]}\n" for node, ns in averages.items())
    _native.calls().workbench_preload_costs(lines.encode())


def relearn_costs() -> None:
    """Lets every live cost-model executor learn anew: its steps count from 0 again.

    For a model whose batches have become larger or smaller. Until it has learned, an executor uses
    the costs that it has.

    Raises:
      NativeError: the native library is missing or was built for another TensorFlow.
    """
    _native.require_executors("relearn_costs")
    _native.calls().workbench_relearn()


def _runs_of_a_step(nodes: pd.DataFrame) -> pd.Series:
    """Of a step that runs the node at all: a branch that is seldom taken costs all once it is."""
    return (nodes["count"] / nodes["steps"].clip(lower=1)).clip(lower=1.0)


def _no_rows() -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series([], dtype=kind) for name, kind in _COLUMNS.items()})


def _shaped(nodes: pd.DataFrame) -> pd.DataFrame:
    missing = [name for name in _COLUMNS if name not in nodes]
    if missing:
        raise DataError(
            f"learned costs have no column {missing[0]!r}; expected {', '.join(_COLUMNS)}"
        )
    columns = {}
    for name, kind in _COLUMNS.items():
        try:
            column = nodes[name].reset_index(drop=True)
            if kind == "int64" and column.dtype != "int64":
                # Averages may come with a fraction of a nanosecond.
                column = pd.to_numeric(column).round()
            columns[name] = column.astype(kind)  # type: ignore[call-overload]
        except (ValueError, TypeError) as error:
            raise DataError(
                f"column {name!r} of learned costs does not hold {kind}: {error}"
            ) from error
    return pd.DataFrame(columns)

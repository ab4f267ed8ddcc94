"""Memory: the live bytes of a trace over its steps, and what holds them at the peak."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from workbench.core.analysis.mean_interval import mean_interval
from workbench.core.analysis.memory.lifetimes import Lifetimes, item_bytes, lifetimes
from workbench.core.graph.op_families import family_names
from workbench.core.trace.trace import Trace
from workbench.display import Displayed, charts
from workbench.errors import TraceError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

By = Literal["family", "scope"]

BUFFER = "Stage buffer"


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Memory(Displayed):
    """Bytes of tensors that live during the steps of a trace; variables are not among them.

    Attributes:
      trace: of which it is.
      begin_ns, end_ns: begin of the first step, end of the last.
      lives: the memory that ops made.
      held: the items in buffers: stage, bytes, begin_ns (put), end_ns (taken), both a nanosecond
        inside, so that what is handed over at a moment counts once.
    """

    trace: Trace
    begin_ns: int
    end_ns: int
    lives: Lifetimes
    held: pd.DataFrame

    def __repr__(self) -> str:
        return f"Memory(peak of {self.peak_bytes} bytes in {len(self.step_peaks)} steps)"

    @functools.cached_property
    def curve(self) -> pd.DataFrame:
        """Each change: time_ns, op_bytes and buffer_bytes after it; of one moment the most."""
        ops = _changes(self.lives.begin_ns, self.lives.end_ns, self.lives.bytes)
        begin, end, size = (
            self.held[name].to_numpy(np.int64) for name in ("begin_ns", "end_ns", "bytes")
        )
        buffers = _changes(begin, end, size)
        # What is released at a moment counts until right after it.
        time = np.concatenate((ops[0], buffers[0]))
        order = np.lexsort((np.concatenate((-ops[1], -buffers[1])), time))
        is_op = np.repeat([1, 0], [len(ops[0]), len(buffers[0])])[order]
        change = np.concatenate((ops[1], buffers[1]))[order]
        return pd.DataFrame(
            {
                "time_ns": time[order],
                "op_bytes": np.cumsum(change * is_op),
                "buffer_bytes": np.cumsum(change * (1 - is_op)),
            }
        )

    @functools.cached_property
    def peak_ns(self) -> int:
        """The first moment at which most bytes live, within the steps."""
        inside = self._inside(self.begin_ns, self.end_ns)
        return (
            int(inside["time_ns"].iloc[_total(inside).argmax()]) if len(inside) else self.begin_ns
        )

    @functools.cached_property
    def peak_bytes(self) -> int:
        """Bytes that live at most at one moment, items in buffers among them."""
        inside = self._inside(self.begin_ns, self.end_ns)
        return int(_total(inside).max()) if len(inside) else 0

    @functools.cached_property
    def step_peaks(self) -> np.ndarray:
        """The most of each step, int64 [steps]."""
        steps = self.trace.steps()
        times = zip(steps["start_ns"].tolist(), steps["end_ns"].tolist(), strict=True)
        return np.array([_total(self._inside(*each)).max(initial=0) for each in times], np.int64)

    @property
    def step_peak_interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean of `step_peaks`, steps taken as independent."""
        return mean_interval(self.step_peaks.astype(float))

    def _inside(self, begin_ns: int, end_ns: int) -> pd.DataFrame:
        """The curve from one moment to another, what lived at the first one too."""
        time = self.curve["time_ns"].to_numpy(np.int64)
        first = max(0, int(np.searchsorted(time, begin_ns, side="right")) - 1)
        return self.curve.iloc[first : int(np.searchsorted(time, end_ns, side="right"))]

    @functools.cached_property
    def df(self) -> pd.DataFrame:
        """What lives at the peak: name, op, family, tensors, bytes, share; the largest first.

        A buffer is a row with the name of its stage.
        """
        at, lives, nodes = self.peak_ns, self.lives, self.trace.nodes
        alive = (lives.begin_ns <= at) & (at <= lives.end_ns)
        node, size = lives.node[alive], lives.bytes[alive]
        table = pd.DataFrame({"node": node, "bytes": size}).groupby("node", as_index=False)
        summed = table.agg(tensors=("bytes", "size"), bytes=("bytes", "sum"))
        own = nodes.iloc[summed["node"].to_numpy(np.int64)]
        names, ops = own["name"].tolist(), own["op"].tolist()
        summed = summed.assign(name=names, op=ops, family=family_names(ops, names))
        held = self.held[(self.held["begin_ns"] <= at) & (at <= self.held["end_ns"])]
        buffers = held.groupby("stage", as_index=False).agg(
            tensors=("bytes", "size"), bytes=("bytes", "sum")
        )
        buffers = buffers.rename(columns={"stage": "name"}).assign(op="", family=BUFFER)
        columns = ["name", "op", "family", "tensors", "bytes"]
        found = pd.concat([summed[columns], buffers[columns]], ignore_index=True)
        found = found[found["bytes"] > 0].astype({"tensors": np.int64, "bytes": np.int64})
        found["share"] = found["bytes"] / max(1, int(found["bytes"].sum()))
        return found.sort_values(["bytes", "name"], ascending=[False, True], ignore_index=True)

    def by_family(self) -> pd.DataFrame:
        """Bytes at the peak by op family: family, bytes, share."""
        return _summed(self.df, "family")

    def by_scope(self, depth: int = 2) -> pd.DataFrame:
        """Bytes at the peak by name scope: scope, bytes, share.

        Args:
          depth: parts of the scope that count.
        """
        scopes = ["/".join(name.split("/")[:-1][:depth]) or name for name in self.df["name"]]
        return _summed(self.df.assign(scope=scopes), "scope")

    @property
    def buffers(self) -> pd.DataFrame:
        """Of each stage's buffer: stage, item_bytes (mean), mean_bytes (over the steps), share.

        `share` is its part of all bytes that live, over the steps.
        """
        rows = [
            {
                "stage": stage,
                "item_bytes": float(own["bytes"].mean()),
                "mean_bytes": self._mean(
                    *(own[name].to_numpy(np.int64) for name in ("begin_ns", "end_ns", "bytes"))
                ),
            }
            for stage, own in self.held.groupby("stage", sort=False)
        ]
        table = pd.DataFrame(rows, columns=["stage", "item_bytes", "mean_bytes"])
        lives = self.lives
        of_ops = self._mean(lives.begin_ns, lives.end_ns, lives.bytes)
        total = of_ops + float(table["mean_bytes"].sum())
        return table.assign(share=table["mean_bytes"] / total if total else 0.0)

    @property
    def variable_bytes(self) -> int | None:
        """Bytes of the model's variables; None where the trace does not know them."""
        sizes = self.trace.meta.variables
        return sum(sizes.values()) if sizes else None

    def plot(
        self, by: By = "family", *, step: int | None = None, theme: str | None = None
    ) -> Figure:
        """A plotly figure: what lives over a step, stacked.

        Args:
          by: "family" for op families, "scope" for name scopes.
          step: its number; None takes the step with the peak.
          theme: "light" or "dark"; None takes `plotly.io.templates.default` where one was set.

        Raises:
          OptionError: another `by` or theme, or no such step.
        """
        return charts().of_memory(self, by, step, theme)

    def _mean(self, begin_ns: np.ndarray, end_ns: np.ndarray, size: np.ndarray) -> float:
        """Bytes that live on average from the begin of the first step to the end of the last."""
        low, high = np.maximum(begin_ns, self.begin_ns), np.minimum(end_ns, self.end_ns)
        lasts = np.maximum(0, high - low).astype(np.float64)
        return float((lasts * size).sum()) / max(1, self.end_ns - self.begin_ns)


def memory(trace: Trace) -> Memory:
    """How many bytes of tensors live at each moment of the steps of a trace, and whose they are.

    Args:
      trace: taken by Workbench's own tracer, see `CaptureHook`.

    Raises:
      TraceError: it has no steps, does not know which op feeds which, or how large outputs are.
    """
    steps = trace.steps()
    if not len(steps):
        raise TraceError("the trace has no step, so nothing lives in it; capture some steps")
    if not trace.events["made_bytes"].any():
        raise TraceError(
            "the trace does not know how large the outputs of ops are: TensorFlow's step stats, an "
            "older version or another tool took it; capture it again without step_stats"
        )
    begin, end = int(steps["start_ns"].min()), int(steps["end_ns"].max())
    return Memory(
        trace=trace, begin_ns=begin, end_ns=end, lives=lifetimes(trace), held=_held(trace, end)
    )


def _held(trace: Trace, end_ns: int) -> pd.DataFrame:
    """Items in buffers."""
    items = trace.items
    put, taken = items["put_end_ns"].to_numpy(np.int64), items["take_end_ns"].to_numpy(np.int64)
    first = int(trace.events["start_ns"].min())
    held = pd.DataFrame(
        {
            "stage": items["stage"].astype("str"),
            "bytes": item_bytes(trace),
            "begin_ns": np.where(put < 0, min(first, end_ns), put + 1),
            "end_ns": np.where(taken < 0, max(end_ns, int(put.max(initial=0)) + 1), taken - 1),
        }
    )
    return held[held["begin_ns"] <= held["end_ns"]].reset_index(drop=True)


def _changes(begin: np.ndarray, end: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate((begin, end)), np.concatenate((size, -size))


def _total(curve: pd.DataFrame) -> np.ndarray:
    both = curve["op_bytes"].to_numpy(np.int64) + curve["buffer_bytes"].to_numpy(np.int64)
    return np.asarray(both, np.int64)


def _summed(table: pd.DataFrame, by: str) -> pd.DataFrame:
    summed = table.groupby(by, as_index=False).agg(bytes=("bytes", "sum"), share=("share", "sum"))
    return summed.sort_values(["bytes", by], ascending=[False, True], ignore_index=True)

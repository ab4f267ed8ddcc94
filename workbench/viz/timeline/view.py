"""Timeline view: a Trace as the finished description that the browser draws.

A view is a small JSON-ready header (lanes, words, where each column lies) and one binary blob of
typed columns, about 18 bytes a span. The browser places, colors, zooms and picks; the few numbers
that depend on what is in view (sums of the Table, of a search) are computed here as well, by
`in_view`, and a test holds both to the same answer.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.analysis.path.gap_kinds import GAP_NAMES
from workbench.core.trace.trace import Trace
from workbench.viz.style import colors, format
from workbench.viz.timeline.columns import Columns, columns_of
from workbench.viz.timeline.data import SPECIAL, TimelineData, timeline_data
from workbench.viz.timeline.lanes import Lane
from workbench.viz.timeline.sentence import sentence, tracer_notice
from workbench.viz.timeline.spans import Spans, spans_of

VIEW_VERSION = 3
MAX_EVENTS = 2_000_000
KEPT_STEPS = 100


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scale:
    """What several timelines have in common, so that the same width is the same time.

    Attributes:
      shown_ns: what each of them shows when it opens.
      whole_ns: what a still picture of each is wide.
    """

    shown_ns: int
    whole_ns: int


@dataclasses.dataclass(frozen=True, eq=False)
class TimelineView:
    """One timeline, ready for every outlet.

    Attributes:
      title: what was traced.
      sentence: the answer, as (text, strong) pieces.
      notice: why not everything is shown, and what the tracer did to the times; else empty.
      origin_ns: the moment 0 of the ruler, on the trace's clock.
      duration_ns: length of the whole trace.
      lanes: lanes from the top.
      spans: columns of the spans, sorted by lane, then start.
      columns: what the blob holds.
      nodes: name, op type and family of every name that a span may have.
      path_names: number of the first name that only the lane of the critical path has.
      steps: the runs of main steps, as StepMetrics.per_step.
      scale: shared with other timelines; None where this one stands alone.
    """

    title: str
    sentence: tuple[tuple[str, bool], ...]
    notice: str
    origin_ns: int
    duration_ns: int
    lanes: tuple[Lane, ...] = dataclasses.field(repr=False)
    spans: Spans = dataclasses.field(repr=False)
    columns: Columns = dataclasses.field(repr=False)
    nodes: pd.DataFrame = dataclasses.field(repr=False)
    path_names: int = dataclasses.field(repr=False)
    steps: pd.DataFrame = dataclasses.field(repr=False)
    scale: Scale | None = None

    def to_json_header(self) -> dict[str, Any]:
        """Everything but the columns, as plain values that `json.dumps` takes."""
        return {
            "version": VIEW_VERSION,
            "title": self.title,
            "sentence": [list(piece) for piece in self.sentence],
            "notice": self.notice,
            "duration": self.duration_ns,
            "shown": self.scale.shown_ns if self.scale else 0,
            "whole": self.scale.whole_ns if self.scale else 0,
            "families": [[f.name, f.code, f.pattern] for f in colors.FAMILIES],
            "gapNames": list(GAP_NAMES),
            "nodeNames": self.path_names - len(SPECIAL),
            "pathNames": self.path_names,
            "lanes": [dataclasses.asdict(lane) for lane in self.lanes],
            "columns": [list(column) for column in self.columns.layout],
            "bytes": self.columns.size,
        }

    def in_view(self, start_ns: int = 0, end_ns: int | None = None) -> pd.DataFrame:
        """What a stretch holds, by op type, the longest total first.

        Args:
          start_ns, end_ns: the stretch, counted from the start of the trace; the whole by default.

        Returns:
          Frame with op, family, spans (how many reach into the stretch), total_ns (their time
          inside it) and longest_ns (the longest of them in full). Runs of steps and the lane of the
          critical path are left out.
        """
        low = self.origin_ns + start_ns
        high = self.origin_ns + (self.duration_ns if end_ns is None else end_ns)
        inside = (self.spans.end >= low) & (self.spans.start <= high)
        family = self.nodes["family"].to_numpy()
        inside &= family[self.spans.name] != colors.RUN
        inside &= self.spans.name < self.path_names
        start, end = self.spans.start[inside], self.spans.end[inside]
        # By number of (op, family): a text for each of a million spans takes seconds.
        kinds = self.nodes.groupby(["op", "family"], sort=False)
        frame = pd.DataFrame(
            {
                "kind": kinds.ngroup().to_numpy()[self.spans.name[inside]],
                "total_ns": np.minimum(end, high) - np.maximum(start, low),
                "longest_ns": end - start,
            }
        )
        table = frame.groupby("kind", sort=False).agg(
            spans=("total_ns", "size"),
            total_ns=("total_ns", "sum"),
            longest_ns=("longest_ns", "max"),
        )
        of = self.nodes.drop_duplicates(["op", "family"])[["op", "family"]]
        joined = of.iloc[table.index].reset_index(drop=True).join(table.reset_index(drop=True))
        ordered = joined.sort_values(["total_ns", "op"], ascending=[False, True])
        return ordered.reset_index(drop=True)

    def steps_in(self, start_ns: int = 0, end_ns: int | None = None) -> float:
        """How many steps a stretch holds, each by the part of it that is inside.

        Args:
          start_ns, end_ns: the stretch, as of `in_view`.
        """
        low = self.origin_ns + start_ns
        high = self.origin_ns + (self.duration_ns if end_ns is None else end_ns)
        start, length = (self.steps[name].to_numpy(np.int64) for name in ("start_ns", "dur_ns"))
        inside = np.minimum(start + length, high) - np.maximum(start, low)
        return float((inside.clip(0) / np.maximum(1, length)).sum())

    def describe(self) -> str:
        """The view as a few lines of plain text."""
        sentence = "".join(text for text, _ in self.sentence)
        lines = [f"Timeline of {self.title}" if self.title else "Timeline", sentence]
        if self.notice:
            lines.append(self.notice)
        ops = self.spans.row >= 0
        lines.append(
            f"{format.integer(len(self.steps))} {'step' if len(self.steps) == 1 else 'steps'}, "
            f"{format.integer(int(ops.sum()))} ops, {format.duration(self.duration_ns)} in all."
        )
        return "\n".join(lines)


def timeline_view(
    trace: Trace,
    *,
    title: str | None = None,
    steps: tuple[int, int] | None = None,
    max_events: int = MAX_EVENTS,
    measured_ns: int | None = None,
) -> TimelineView:
    """The timeline of a trace.

    Args:
      trace: what was captured.
      title: what the timeline is called; None takes the trace's own title.
      steps: first and last step number to show; None shows all, or the last 100 where the trace
        has more than `max_events` events.
      max_events: most events shown when `steps` is None.
      measured_ns: what a step of the run takes that the trace is of, in the median; None takes the
        steps beside the trace.
    """
    trace, restricted = _restricted(trace, steps, max_events)
    data = timeline_data(trace)
    if measured_ns is not None:
        times = dataclasses.replace(data.times, untraced_steps=0, untraced_ns_median=measured_ns)
        data = dataclasses.replace(data, times=times)
    spans, lanes = spans_of(data)
    origin, finish = _extent(data, spans)
    return TimelineView(
        title=trace.meta.title if title is None else title,
        sentence=sentence(data),
        notice=" ".join(filter(None, (restricted, tracer_notice(trace)))),
        origin_ns=origin,
        duration_ns=finish - origin,
        lanes=lanes,
        spans=spans,
        columns=columns_of(data, spans, lanes, (origin, finish)),
        nodes=data.names,
        path_names=data.path_names,
        steps=data.times.per_step,
    )


def _restricted(trace: Trace, steps: tuple[int, int] | None, max_events: int) -> tuple[Trace, str]:
    runs = trace.steps()
    if steps is not None:
        runs = runs[runs["number"].between(*steps)]
        shown = f"Steps {steps[0]} to {steps[1]} of the trace."
    elif len(trace.events) > max_events and len(runs) > KEPT_STEPS:
        first = int(runs["number"].iloc[-2 * KEPT_STEPS]) if len(runs) >= 2 * KEPT_STEPS else 0
        shown = (
            f"{format.million(len(trace.events))} events: showing the last {KEPT_STEPS} steps. "
            f"Open another range with steps=({first}, {first + KEPT_STEPS})."
        )
        runs = runs.iloc[-KEPT_STEPS:]
    else:
        return trace, ""
    if runs.empty:
        return trace, f"The trace holds no step from {steps[0]} to {steps[1]}." if steps else ""
    return trace.window(int(runs["start_ns"].min()), int(runs["end_ns"].max())), shown


def _extent(data: TimelineData, spans: Spans) -> tuple[int, int]:
    """First and last moment of anything that is drawn; a stretch of 1 ns if nothing is."""
    moments = [held.times_ns for held in data.occupancy.values() if len(held.times_ns)]
    if len(spans.start):
        moments += [spans.start, spans.end]
    if not moments:
        return 0, 1
    origin = min(int(when.min()) for when in moments)
    return origin, max(origin + 1, *(int(when.max()) for when in moments))

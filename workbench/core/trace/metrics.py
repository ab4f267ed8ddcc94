"""Trace → StepMetrics: how long a step takes, what it waits for, what runs ahead of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.core.trace import intervals
from workbench.core.trace.trace import Trace
from workbench.display import Displayed


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class StepMetrics(Displayed):
    """The numbers of one trace; durations in ns, None where the trace has nothing to count.

    Attributes:
      steps: main steps in the trace.
      step_ns_median, step_ns_p95: time of one step, from the call of run to its return.
      untraced_steps, untraced_ns_median: steps that were measured without a tracer beside the
        trace, and the time of one; 0 and None where none were.
      take_wait_ns_median, take_wait_ns_p95: time a step waits in take; steps that took nothing
        count as 0. None without a stage.
      take_wait_share: time of all steps that is wait in take, 0 to 1.
      stage_runs: runs of staged sides.
      stage_work_ns_median: time of a stage run outside its wait in put.
      put_wait_ns_median: time a stage run waits in put.
      overlap: share of the stages' work (runs without wait in put) during which a step computes
        (runs, and does not wait in take), 0 to 1.
      run_ahead: mean number of items in the buffer at the moment take is called.
      per_step: number, track, start_ns, dur_ns, take_wait_ns, ops.
      per_stage_run: stage, track, number, start_ns, dur_ns, put_wait_ns.
      by_node: name, op, side ("step" or "stage"), spans, total_ns, self_ns, longest_ns; the
        largest self time first. Self time is that of ops directly inside taken off.
    """

    steps: int
    step_ns_median: int | None
    step_ns_p95: int | None
    untraced_steps: int
    untraced_ns_median: int | None
    take_wait_ns_median: int | None
    take_wait_ns_p95: int | None
    take_wait_share: float | None
    stage_runs: int
    stage_work_ns_median: int | None
    put_wait_ns_median: int | None
    overlap: float | None
    run_ahead: float | None
    per_step: pd.DataFrame = dataclasses.field(repr=False)
    per_stage_run: pd.DataFrame = dataclasses.field(repr=False)
    by_node: pd.DataFrame = dataclasses.field(repr=False)

    def to_pandas(self) -> pd.DataFrame:
        """The single numbers as one row, so that traces can be put below each other."""
        single = [f.name for f in dataclasses.fields(self) if f.repr]
        return pd.DataFrame([{name: getattr(self, name) for name in single}])


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class StepTimes:
    """What main steps take, without what ran in them; each number is explained at StepMetrics."""

    steps: int
    step_ns_median: int | None
    untraced_steps: int
    untraced_ns_median: int | None
    per_step: pd.DataFrame


def step_times(trace: Trace) -> StepTimes:
    """Counts the main steps of a trace that passed its self check."""
    per_step = _per_step(trace)
    untraced_steps, untraced_ns = _untraced(trace)
    return StepTimes(
        steps=len(per_step),
        step_ns_median=_quantile(per_step["dur_ns"], 0.5),
        untraced_steps=untraced_steps,
        untraced_ns_median=untraced_ns,
        per_step=per_step,
    )


def step_metrics(trace: Trace) -> StepMetrics:
    """Counts a trace that passed its self check; each number is explained at StepMetrics."""
    times, per_stage_run = step_times(trace), _per_stage_run(trace)
    per_step = times.per_step
    staged = len(trace.items) > 0
    waits = per_step["take_wait_ns"] if staged else per_step["take_wait_ns"].iloc[:0]
    all_ns = int(per_step["dur_ns"].sum())
    work = per_stage_run["dur_ns"] - per_stage_run["put_wait_ns"]
    return StepMetrics(
        steps=times.steps,
        step_ns_median=times.step_ns_median,
        step_ns_p95=_quantile(per_step["dur_ns"], 0.95),
        untraced_steps=times.untraced_steps,
        untraced_ns_median=times.untraced_ns_median,
        take_wait_ns_median=_quantile(waits, 0.5),
        take_wait_ns_p95=_quantile(waits, 0.95),
        take_wait_share=int(waits.sum()) / all_ns if staged and all_ns else None,
        stage_runs=len(per_stage_run),
        stage_work_ns_median=_quantile(work, 0.5),
        put_wait_ns_median=_quantile(per_stage_run["put_wait_ns"], 0.5),
        overlap=_overlap(trace, per_stage_run),
        run_ahead=_run_ahead(trace),
        per_step=per_step,
        per_stage_run=per_stage_run,
        by_node=_by_node(trace),
    )


def _untraced(trace: Trace) -> tuple[int, int | None]:
    """How many steps were measured without a tracer, and the time of one."""
    untraced = trace.meta.untraced
    if untraced is None or untraced.while_traced:
        return 0, None
    # A trace of an older version has the mean from one step's begin to the next alone.
    step_ns = untraced.step_ns if untraced.run_ns is None else untraced.run_ns
    return (0, None) if step_ns is None else (untraced.steps, step_ns)


def _quantile(values: pd.Series, share: float) -> int | None:
    return round(float(values.quantile(share))) if len(values) else None


def _of_kind(trace: Trace, kind: str) -> np.ndarray:
    """Rows of the tracks of one kind."""
    return np.flatnonzero((trace.tracks["kind"] == kind).to_numpy(bool))


def _per_step(trace: Trace) -> pd.DataFrame:
    steps = trace.steps()
    on_threads = (trace.tracks["kind"] == "inter_op").to_numpy(bool)[trace.events["track"]]
    client, _ = pd.factorize(trace.tracks["client"])
    of_ops = client[trace.events["track"][on_threads]]
    # By client: steps of two clients of a cluster may have one number.
    ops = trace.events["step"][on_threads].groupby(of_ops).value_counts().to_dict()
    waits = _wait_by(trace, "take", "take_track", "take_step")
    return pd.DataFrame(
        {
            "number": steps["number"],
            "track": steps["track"],
            "start_ns": steps["start_ns"],
            "dur_ns": steps["end_ns"] - steps["start_ns"],
            "take_wait_ns": _looked_up(waits, steps["track"], steps["number"]),
            "ops": _looked_up(ops, client[steps["track"]], steps["number"]),
        }
    )


def _per_stage_run(trace: Trace) -> pd.DataFrame:
    runs = trace.runs[trace.runs["track"].isin(_of_kind(trace, "prefetch"))]
    runs = runs.sort_values("start_ns", kind="stable", ignore_index=True)
    waits = _wait_by(trace, "put", "put_track", "put_run")
    return pd.DataFrame(
        {
            "stage": trace.tracks["stage"].take(runs["track"].to_numpy()).array,
            "track": runs["track"],
            "number": runs["number"],
            "start_ns": runs["start_ns"],
            "dur_ns": runs["end_ns"] - runs["start_ns"],
            "put_wait_ns": _looked_up(waits, runs["track"], runs["number"]),
        }
    )


def _wait_by(trace: Trace, call: str, track: str, number: str) -> dict[tuple[int, int], int]:
    """Waiting time per (track, run); several calls of one run at one time count once."""
    items = trace.items[(trace.items[f"{call}_start_ns"] >= 0) & (trace.items[track] >= 0)]
    if items.empty:
        return {}
    start, end = (items[f"{call}_{edge}_ns"].to_numpy(np.int64) for edge in ("start", "end"))
    runs = items.groupby([track, number], sort=False)
    # each run gets a stretch of a line to itself, so one union serves all of them
    first = start.min()
    length = max(start.max(), end.max()) - first + 1
    shift = runs.ngroup().to_numpy() * length - first
    low, high = intervals.union(start + shift, end + shift)
    waited = np.zeros(runs.ngroups, np.int64)
    np.add.at(waited, low // length, high - low)
    keys = items[[track, number]].drop_duplicates().itertuples(index=False, name=None)
    return dict(zip(keys, waited.tolist(), strict=True))


def _looked_up(found: Mapping[Any, int], *key: pd.Series | np.ndarray) -> np.ndarray:
    """The number of each key, 0 where there is none."""
    keys = zip(*(part.tolist() for part in key), strict=True)
    return np.array([found.get(each, 0) for each in keys], np.int64)


def _overlap(trace: Trace, per_stage_run: pd.DataFrame) -> float | None:
    """Share of the stages' work during which a step computes; every stage run counts by itself."""
    steps, items = trace.steps(), trace.items
    # a step computes where it runs outside its own wait, so several clients are taken one by one
    computing: list[intervals.Intervals] = []
    for track in steps["track"].unique():
        client_steps = steps[steps["track"] == track]
        waits = items[(items["take_track"] == track) & (items["take_start_ns"] >= 0)]
        computing.append(
            intervals.subtract(
                intervals.union(
                    client_steps["start_ns"].to_numpy(), client_steps["end_ns"].to_numpy()
                ),
                intervals.union(waits["take_start_ns"].to_numpy(), waits["take_end_ns"].to_numpy()),
            )
        )
    if not computing or per_stage_run.empty:
        return None
    step_side = intervals.union(*(np.concatenate(edge) for edge in zip(*computing, strict=True)))
    worked = hidden = 0
    for track in per_stage_run["track"].unique():
        stage_runs = per_stage_run[per_stage_run["track"] == track]
        start = stage_runs["start_ns"].to_numpy()
        puts = items[(items["put_track"] == track) & (items["put_start_ns"] >= 0)]
        work = intervals.subtract(
            intervals.union(start, start + stage_runs["dur_ns"].to_numpy()),
            intervals.union(puts["put_start_ns"].to_numpy(), puts["put_end_ns"].to_numpy()),
        )
        worked += int((work[1] - work[0]).sum())
        hidden += int(intervals.covered(*work, step_side).sum())
    return hidden / worked if worked else None


def _run_ahead(trace: Trace) -> float | None:
    """Mean occupancy just before each take was called."""
    occupancy, items = trace.occupancy(), trace.items[trace.items["take_start_ns"] >= 0]
    found: list[int] = []
    for stage, before in trace.held_before().items():
        changes = occupancy[occupancy["stage"] == stage]
        called = items.loc[items["stage"] == stage, "take_start_ns"].to_numpy()
        place = np.searchsorted(changes["time_ns"].to_numpy(), called, side="left")
        count = np.concatenate(([before], changes["count"].to_numpy()))
        found += count[place].tolist()
    return float(np.mean(found)) if found else None


def self_times(trace: Trace) -> np.ndarray:
    """Time of each event without that of the ops directly inside it, int64 [events], in ns.

    Ops of a thread nest, as calls do. On a prefetch track several threads are drawn together: there
    one op beside another is no call, and self time is the whole.
    """
    events = trace.events
    start = events["start_ns"].to_numpy()
    end = start + events["dur_ns"].to_numpy()
    track = events["track"].to_numpy()
    own = (end - start).astype(np.int64)
    for number in _of_kind(trace, "inter_op"):
        rows = np.flatnonzero(track == number)
        own[rows] = intervals.self_time(start[rows], end[rows])
    return own


def _by_node(trace: Trace) -> pd.DataFrame:
    events, own = trace.events, self_times(trace)
    total = events["dur_ns"].to_numpy(np.int64)
    track = events["track"].to_numpy()
    staged = np.isin(track, _of_kind(trace, "prefetch"))
    frame = pd.DataFrame(
        {"node": events["node"], "staged": staged, "total_ns": total, "self_ns": own}
    )
    summed = frame.groupby(["node", "staged"], sort=False, as_index=False).agg(
        spans=("total_ns", "size"),
        total_ns=("total_ns", "sum"),
        self_ns=("self_ns", "sum"),
        longest_ns=("total_ns", "max"),
    )
    nodes = trace.nodes.take(summed["node"].to_numpy()).reset_index(drop=True)
    table = pd.DataFrame(
        {
            "name": nodes["name"],
            "op": nodes["op"],
            "side": np.where(summed["staged"], "stage", "step"),
            **{name: summed[name] for name in ("spans", "total_ns", "self_ns", "longest_ns")},
        }
    )
    return table.sort_values(["self_ns", "name"], ascending=[False, True], ignore_index=True)

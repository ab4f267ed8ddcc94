"""The stage's buffer: who waits for whom, and findings of a step that waits for its items."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.analysis.findings.finding import Claim, Verdict
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.trace.items import WAIT_MIN_NS
from workbench.core.trace.metrics import StepMetrics, step_metrics
from workbench.core.trace.trace import Trace
from workbench.number_words import counted, decimal, duration, share

# Of the takes that found the buffer empty: most of them, or so few that it was chance.
_MOSTLY, _HARDLY = 0.5, 0.1
# A stage run that mostly stands in its input op uses no core: a second one beside it costs none.
_WAITING_INPUT = 0.5
# A second thread is worth its disorder where it gives this share of a step.
_WORTHWHILE = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class Takes:
    """How the takes of a trace found their buffers.

    Attributes:
      count: takes.
      empty, full: how many of them found it empty, or full; full is None where a capacity is not
        known.
      ahead: items in it, on average.
      capacity: items that it holds at most; None where it is not known, or stages differ.
    """

    count: int
    empty: int
    full: int | None
    ahead: float
    capacity: int | None


def takes_of(trace: Trace) -> Takes | None:
    """How the takes of a trace found their buffers; None where no step took any."""
    changes = trace.occupancy()
    held: list[np.ndarray] = []
    room: list[np.ndarray] = []
    for stage, before in trace.held_before().items():
        # Of chained stages the inner one is taken from by the outer one, not by a step.
        own = trace.items[(trace.items["stage"] == stage) & (trace.items["take_track"] >= 0)]
        of_stage = changes[changes["stage"] == stage]
        called = own["take_start_ns"].to_numpy(np.int64)
        place = np.searchsorted(of_stage["time_ns"].to_numpy(), called, side="left")
        held.append(np.concatenate(([before], of_stage["count"].to_numpy()))[place])
        room.append(np.full(len(own), trace.meta.capacity.get(stage, -1)))
    if not sum(map(len, held)):
        return None
    count, most = np.concatenate(held), np.concatenate(room)
    return Takes(
        count=len(count),
        empty=int((count == 0).sum()),
        full=int((count >= most).sum()) if (most > 0).all() else None,
        ahead=float(count.mean()),
        capacity=int(most[0]) if (most > 0).all() and len(set(most.tolist())) == 1 else None,
    )


def buffer_verdict(trace: Trace) -> Verdict | None:
    """What bounds the steps, from the fill of the buffer at each take; None without a stage."""
    takes = takes_of(trace)
    if takes is None and len(trace.items):
        words = "The trace shows items of a stage, but no step that takes one."
        return Verdict(bound="unknown", words=words)
    if takes is None:
        return None
    of = f" of {takes.capacity}" if takes.capacity else ""
    seen = f"{takes.empty} of {takes.count} takes find the buffer empty"
    if takes.full is not None:
        seen += f", {takes.full} find it full"
    seen += f"; it holds {decimal(takes.ahead, 1)}{of} on average."
    if takes.empty >= _MOSTLY * takes.count:
        return Verdict(bound="input", words=f"The input is the bottleneck: {seen}")
    if takes.empty <= _HARDLY * takes.count:
        return Verdict(bound="step", words=f"The step is the bottleneck, not its input: {seen}")
    return Verdict(bound="both", words=f"Now the input is the bottleneck, now the step: {seen}")


def fill_over_time(trace: Trace) -> pd.DataFrame:
    """How full each stage's buffer is while the steps run: stage, time_ns, count."""
    steps = trace.steps()
    changes = trace.occupancy()
    if not len(steps):
        return changes.iloc[:0]
    low, high = int(steps["start_ns"].min()), int(steps["end_ns"].max())
    parts = []
    for stage, before in trace.held_before().items():
        own = changes[changes["stage"] == stage]
        earlier = own[own["time_ns"] < low]
        count = int(earlier["count"].iloc[-1]) if len(earlier) else before
        begin = pd.DataFrame({"stage": [stage], "time_ns": [low], "count": [count]})
        parts += [begin, own[(own["time_ns"] >= low) & (own["time_ns"] <= high)]]
    return pd.concat(parts, ignore_index=True).astype(changes.dtypes) if parts else changes


def slow_stage(account: StepAccount) -> Claim | None:
    """The step waits in take: for a stage of which a second thread gives more, or for any stage."""
    takes, metrics = takes_of(account.trace), step_metrics(account.trace)
    if takes is None or not metrics.take_wait_share:
        return None
    waits = metrics.per_step["take_wait_ns"]
    waited = int((waits >= WAIT_MIN_NS).sum())
    seen = (
        f"{takes.empty} of {takes.count} takes find the buffer empty; the step waits "
        f"{duration(float(waits.mean()))} on average, {duration(metrics.take_wait_ns_p95)} at the "
        f"95th percentile, and waits in {waited} of {metrics.steps} steps."
    )
    inputs = _time_in_input(account, metrics)
    if metrics.per_stage_run["track"].nunique() == 1 and inputs.share >= _WAITING_INPUT:
        # An input op answers one thread at a time: of two, one works while the other waits.
        run_ns = inputs.run_ns or account.step_ns
        left_ns = max(account.step_ns - float(waits.mean()), run_ns * max(0.5, inputs.share))
        if account.step_ns - left_ns >= _WORTHWHILE * account.step_ns:
            return _one_thread(account, inputs, seen, account.step_ns - left_ns)
    return _slow_input(account, metrics, inputs, seen)


def _one_thread(account: StepAccount, inputs: _InputTime, seen: str, gain_ns: float) -> Claim:
    return Claim(
        key="one_thread_stage",
        title="One thread of the stage waits for the input",
        evidence=(
            f"The stage's only thread stands in {inputs.name} {share(inputs.share)} of the time "
            f"that an item takes it ({duration(inputs.run_ns)}). {seen}"
        ),
        mend="StageOptions(num_threads=2); two threads may hand batches over in another order",
        share=account.taking,
        at_most_ns=gain_ns,
        nodes=inputs.nodes,
    )


def _slow_input(account: StepAccount, metrics: StepMetrics, inputs: _InputTime, seen: str) -> Claim:
    threads = counted(metrics.per_stage_run["track"].nunique(), "thread")
    mend = "Make the input cheaper or read it in parallel (num_parallel_calls, a columnar file)"
    stands = ""
    if inputs.share >= _WAITING_INPUT:
        stands = (
            f" For {share(inputs.share)} of that it stands in {inputs.name}, which answers one "
            "thread at a time."
        )
    else:
        mend += ", or give the stage more threads while cores are free"
    return Claim(
        key="input_bound",
        title="The step waits for its input",
        evidence=(
            f"{seen} Making an item takes {duration(metrics.stage_work_ns_median)} of one thread, "
            f"and the stage has {threads}.{stands}"
        ),
        mend=mend,
        share=account.taking,
        at_most_ns=float(metrics.per_step["take_wait_ns"].mean()),
        nodes=_costliest_staged(account),
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _InputTime:
    """How much of a stage run is spent in ops that wait for a batch."""

    share: float
    run_ns: float | None
    name: str
    nodes: tuple[int, ...]


def _time_in_input(account: StepAccount, metrics: StepMetrics) -> _InputTime:
    events = account.trace.events
    node = events["node"].to_numpy(np.int64)
    waits = account.staged_event & account.is_input[node]
    in_input = float(events["dur_ns"].to_numpy(np.int64)[waits].sum())
    runs = metrics.per_stage_run
    work = float((runs["dur_ns"] - runs["put_wait_ns"]).sum())
    nodes = tuple(np.unique(node[waits]).tolist())
    return _InputTime(
        share=in_input / work if work else 0.0,
        run_ns=work / len(runs) if len(runs) else None,
        name=f"`{account.name[nodes[0]]}`" if nodes else "its input",
        nodes=nodes,
    )


def _costliest_staged(account: StepAccount) -> tuple[int, ...]:
    events = account.trace.events[account.staged_event]
    spent = events["dur_ns"].groupby(events["node"].to_numpy()).sum()
    return tuple(int(each) for each in spent.sort_values(ascending=False).index)

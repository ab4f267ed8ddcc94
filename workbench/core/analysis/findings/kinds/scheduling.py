"""Findings about the order in which ready ops run, and about what starting them costs."""

from __future__ import annotations

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.sentences import longest
from workbench.core.analysis.findings.step_account import BEHIND, HANDOVER, StepAccount
from workbench.number_words import counted, duration, share

# Waking a thread and handing it an op takes some µs, so shorter ops gain nothing from a thread.
SMALL_NS = 10_000
# No thread takes longer to wake while a core is free; what lasts longer lacks a core.
WAKE_NS = 100_000
# Threads that run ops for this much of the time hardly leave room for another order.
_BUSY = 0.8


def small_ops(account: StepAccount) -> Claim | None:
    """Ops of the critical path that take longer to be started than to run."""
    pieces = account.pieces
    event = pieces["event"].to_numpy(np.int64)
    starting = account.of_kind("dispatch", HANDOVER) & (account.per_start_ns < WAKE_NS)
    starting &= pieces["side"].to_numpy(object) == "step"
    ran = account.of_kind("op")
    run_ns = account.trace.events["dur_ns"].to_numpy(np.int64)
    starting &= run_ns[np.maximum(event, 0)] < SMALL_NS
    small = ran & (account.dur_ns < SMALL_NS)
    to_start, to_run = account.per_step(starting), account.per_step(small)
    if to_start <= to_run:
        return None
    count, of = small.sum() / account.steps, ran.sum() / account.steps
    return Claim(
        key="small_ops",
        title="Small ops cost more to start than to run",
        evidence=(
            f"{counted(count, 'op')} of the {counted(of, 'op')} on the critical path run under "
            f"{duration(SMALL_NS)}: {duration(to_run)} a step. Starting ops takes "
            f"{duration(to_start)}."
        ),
        mend="Run the step on one thread in a fixed order (inline), or fuse the small ops",
        toggle="inline_executor",
        share=starting.astype(float),
        at_most_ns=to_start,
        nodes=account.charged(starting)[0],
    )


def order_of_ready_ops(account: StepAccount) -> Claim | None:
    """Ready ops of the critical path wait on their thread behind ops that could run later."""
    behind = _behind(account)
    waited, gain = account.per_step(behind), _gain_of_order(account)
    if not gain:
        return None
    nodes, each_ns = account.charged(behind)
    return Claim(
        key="order_of_ops",
        title="The critical path waits behind ops that could run later",
        evidence=(
            f"Ops of the critical path are ready, but their thread runs others first: "
            f"{duration(waited)} a step. Longest: {longest(account, nodes, each_ns)}; all have "
            f"slack. In no order can {counted(account.threads, 'thread')} do the ops of a step in "
            f"less than {duration(account.least_ns)}."
        ),
        mend="Start first what the longest path depends on (cost model)",
        toggle="cost_model_executor",
        share=behind * (gain / waited),
        at_most_ns=gain,
        nodes=nodes,
    )


def busy_threads(account: StepAccount) -> Claim | None:
    """Ready ops of the critical path wait because all threads have more than enough to do."""
    busy = account.least_ns / account.step_ns
    behind = _behind(account)
    waited = account.per_step(behind)
    if busy < _BUSY or not waited:
        return None
    cores = account.trace.meta.cores
    more = cores is not None and account.threads < cores
    return Claim(
        key="busy_threads",
        title="Ready ops wait for a thread, and all threads are busy",
        evidence=(
            f"{counted(account.threads, 'inter-op thread')} run ops for {share(busy)} of the time; "
            f"ready ops of the critical path wait {duration(waited)} a step for one. Another order "
            f"gives at most {duration(_gain_of_order(account))} of it."
        ),
        mend=(
            f"inter_op_parallelism_threads={cores}: there are {cores} cores"
            if more
            else "Fewer or cheaper ops a step, or a machine with more cores"
        ),
        share=behind * (1 - _gain_of_order(account) / waited),
        at_most_ns=None,
    )


def _behind(account: StepAccount) -> np.ndarray:
    """Pieces of main steps in which a thread runs what could run later than the op it delays."""
    pieces = account.pieces
    slack = account.path.slack_ns[np.maximum(pieces["event"].to_numpy(np.int64), 0)]
    return account.of_kind(BEHIND) & (pieces["side"] == "step").to_numpy(bool) & (slack > 0)


def _gain_of_order(account: StepAccount) -> float:
    """What another order gives a step at most, in ns."""
    return max(0.0, min(account.per_step(_behind(account)), account.step_ns - account.least_ns))

"""Findings about cores: ops that get none, more ops at a time than cores, one op alone."""

from __future__ import annotations

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.kinds.client import beyond_usual
from workbench.core.analysis.findings.kinds.scheduling import WAKE_NS
from workbench.core.analysis.findings.step_account import BEHIND, HANDOVER, StepAccount
from workbench.number_words import counted, decimal, duration, share

# Kernels that run on the one thread that starts them, whatever their size; others may use threads
# that a trace does not show, so that an op alone is no core that rests.
_ONE_THREAD = frozenset(
    {
        *("DecodeCSV", "StringSplit", "StringSplitV2", "StringToNumber", "StringToHashBucketFast"),
        *("StringToHashBucketStrong", "Unique", "UniqueV2", "UniqueWithCounts", "AsString"),
        *("SparseFillEmptyRows", "SparseSegmentMean", "SparseSegmentSum", "SparseSegmentSqrtN"),
        *("SparseSegmentMeanGrad", "SparseSegmentMeanGradV2", "SparseSegmentSumGrad"),
        *("SparseSegmentSumGradV2", "SparseSegmentSqrtNGrad", "SparseSegmentSqrtNGradV2"),
        *("RaggedTensorToTensor", "DynamicPartition", "SparseToDense", "SparseReshape"),
    }
)
# Op time may exceed CPU time by this factor through clocks and short sleeps alone.
_WITHOUT_CORE = 1.25


def too_few_cores(account: StepAccount) -> Claim | None:
    """Ops last much longer than the CPU time that the process gets: they wait for a core."""
    untraced = account.trace.meta.untraced
    if untraced is None or not untraced.cpu_ns:
        return None
    # Ops that share cores with one another last longer for that; see `oversubscribed`.
    work, cpu = account.work_ns - _shared_ns(account), untraced.cpu_ns
    if work < _WITHOUT_CORE * cpu:
        return None
    missing = 1 - cpu / work
    ran = (account.of_kind("op") & ~account.of_nodes(account.is_input)) | account.of_kind(BEHIND)
    late = account.of_kind(HANDOVER) & (account.per_start_ns >= WAKE_NS)
    calls_late = beyond_usual(account)
    weights = missing * ran + late + calls_late
    cores = account.trace.meta.cores
    used = ""
    if untraced.step_ns and cores:
        got = decimal(cpu / untraced.step_ns, 1)
        used = f" It uses {got} of {counted(cores, 'core')}."
    return Claim(
        key="too_few_cores",
        title="Ops last longer than the CPU time that they get",
        evidence=(
            f"The ops of a step last {duration(work)} on their threads, but the process gets "
            f"{duration(cpu)} of CPU time a step, measured without the tracer.{used} At least "
            f"{duration(work - cpu)} of op time passes without a core: other programs hold the "
            "cores, or ops wait for a lock or a disk. Ready ops of the "
            f"critical path wait {duration(account.per_step(late))} for threads that run nothing; "
            f"calls and returns of steps take {duration(account.per_step(calls_late))} more than "
            "they usually do."
        ),
        mend="Free the machine of other programs, or give this one its cores; then measure again",
        share=weights,
        at_most_ns=None,
        of_machine=True,
    )


def _shared_ns(account: StepAccount) -> float:
    """Op time in a step of ops beyond the number of cores, which run in other ops' time."""
    time, running = account.running
    beyond = np.maximum(running - (account.trace.meta.cores or np.inf), 0)
    return float((np.diff(time) * beyond[:-1]).sum()) / account.steps


def oversubscribed(account: StepAccount) -> Claim | None:
    """More ops run at a time than there are cores."""
    cores = account.trace.meta.cores
    if not cores:
        return None
    time, running = account.running
    # While r ops share c cores, each goes on at c / r of its speed.
    lost = np.where(running > cores, 1 - cores / np.maximum(running, 1), 0.0)
    begin = account.pieces["start_ns"].to_numpy(np.int64)
    slowed = _integral(time, lost, begin, begin + account.dur_ns)
    ran = account.of_kind("op") & ~account.of_nodes(account.is_input)
    weights = np.divide(
        slowed, account.dur_ns, out=np.zeros(len(begin)), where=ran & (account.dur_ns > 0)
    )
    cost = account.per_step(weights)
    if not cost:
        return None
    length = np.diff(time, append=time[-1:])
    inside = (time >= account.path.begin_ns) & (time < account.path.end_ns)
    over = float(length[inside & (running > cores)].sum())
    over /= account.path.end_ns - account.path.begin_ns
    most = int(running[inside].max(initial=0))
    return Claim(
        key="oversubscribed",
        title="More ops run at a time than there are cores",
        evidence=(
            f"For {share(over)} of the time more than {counted(cores, 'op')} run at once, up to "
            f"{most}, on {counted(cores, 'core')}."
        ),
        mend=f"inter_op_parallelism_threads={cores}, and fewer threads of stages",
        share=weights,
        at_most_ns=cost,
    )


def lone_op(account: StepAccount) -> Claim | None:
    """A long op of one thread, of the critical path, while nothing else runs."""
    if account.threads < 2:
        return None
    pieces = account.pieces
    time, running = account.running
    begin = pieces["start_ns"].to_numpy(np.int64)
    alone = _integral(time, (running <= 1).astype(float), begin, begin + account.dur_ns)
    single = account.of_kind("op") & account.of_nodes(np.isin(account.op, list(_ONE_THREAD)))
    single &= (pieces["side"] == "step").to_numpy(bool)
    if not single.any():
        return None
    spent = np.bincount(account.node[single], alone[single], len(account.op)) / account.steps
    node = int(spent.argmax())
    own = single & (account.node == node)
    runs = max(account.node_runs[node], 1.0)
    weights = np.divide(alone, account.dur_ns, out=np.zeros(len(begin)), where=own)
    return Claim(
        key="lone_op",
        title="One long op of one thread runs alone",
        evidence=(
            f"`{account.name[node]}` ({account.op[node]}) runs {duration(account.node_ns[node])} "
            f"a step, {duration(account.node_ns[node] / runs)} at a time, on one thread. For "
            f"{duration(spent[node])} of it no other op runs."
        ),
        mend="Split it into parts that can run side by side, or run it ahead of the step",
        share=weights,
        at_most_ns=max(
            0.0,
            min(spent[node] * (1 - 1 / account.threads), account.step_ns - account.least_ns),
        ),
        nodes=(node,),
    )


def _integral(
    time: np.ndarray, value: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """The integral of a function of steps over each interval; it is 0 outside of `time`."""
    if not len(time):
        return np.zeros(len(begin))
    sums = np.concatenate(([0.0], np.cumsum(np.diff(time) * value[:-1])))

    def until(moment: np.ndarray) -> np.ndarray:
        at = np.clip(np.searchsorted(time, moment, side="right") - 1, 0, len(time) - 1)
        inside = np.clip(moment, time[0], time[-1]) - time[at]
        result: np.ndarray = sums[at] + np.maximum(inside, 0) * value[at]
        return result

    return until(end) - until(begin)

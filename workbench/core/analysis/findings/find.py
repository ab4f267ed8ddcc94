"""A trace → Findings: asks for each kind, weighs what is claimed, ranks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

import numpy as np

from workbench.core.analysis.findings.finding import Claim, Finding, Findings, Verdict
from workbench.core.analysis.findings.kinds.buffer import buffer_verdict, fill_over_time, slow_stage
from workbench.core.analysis.findings.kinds.client import client_time
from workbench.core.analysis.findings.kinds.cores import lone_op, oversubscribed, too_few_cores
from workbench.core.analysis.findings.kinds.front import batch_only, front_on_compute_side
from workbench.core.analysis.findings.kinds.layers import many_op_interactions, many_op_norms
from workbench.core.analysis.findings.kinds.lookups import many_small_ops
from workbench.core.analysis.findings.kinds.memory_pages import new_pages
from workbench.core.analysis.findings.kinds.optimizer import whole_table_updates
from workbench.core.analysis.findings.kinds.replay import replay_off
from workbench.core.analysis.findings.kinds.scheduling import (
    busy_threads,
    order_of_ready_ops,
    small_ops,
)
from workbench.core.analysis.findings.kinds.tables import copied_tables, dense_gradients
from workbench.core.analysis.findings.kinds.transfers import many_small_transfers
from workbench.core.analysis.findings.step_account import StepAccount, step_account
from workbench.core.cluster.client import of_client, slowest_client
from workbench.core.trace.trace import Trace
from workbench.number_words import duration, share

_KINDS: tuple[Callable[[StepAccount], Claim | None], ...] = (
    slow_stage,
    front_on_compute_side,
    many_small_ops,
    many_op_norms,
    many_op_interactions,
    copied_tables,
    dense_gradients,
    whole_table_updates,
    small_ops,
    order_of_ready_ops,
    busy_threads,
    lone_op,
    oversubscribed,
    too_few_cores,
    new_pages,
    client_time,
    replay_off,
)
# Of a cluster: its executors are TensorFlow's own, and its threads and cores several machines'.
_KINDS_OF_CLUSTERS: tuple[Callable[[StepAccount], Claim | None], ...] = (
    slow_stage,
    front_on_compute_side,
    many_small_ops,
    many_op_norms,
    many_op_interactions,
    copied_tables,
    dense_gradients,
    many_small_transfers,
    client_time,
)
# Of a step that computes on a GPU: most ops on the threads launch something, or wait for it.
_OF_CORES = (small_ops, order_of_ready_ops, busy_threads, lone_op, oversubscribed, too_few_cores)
# What costs less of a step drowns in the noise of a measurement.
_WORTH = 0.02
# What explains this much of the visible wait is its cause; what explains less is one of several.
_CAUSE = 0.8
# Where the step waits for less than this part of its time, there is no wait to find a cause of.
_WAITS = 0.05
# The cause of the wait comes first where it costs this part of what the costliest finding does.
_CAUSE_FIRST = 0.5
# A step has a fault of its own where one costs this part of it.
_OWN_FAULT = 0.1
# An unstaged step whose batch takes more of it than all else is bound by its input.
_MOSTLY = 0.5
_MOST_NODES, _MOST_SOURCES = 20, 3


def find(trace: Trace) -> Findings:
    """What makes the steps of a trace slow.

    Args:
      trace: taken by Workbench's own tracer, see `CaptureHook`; or of a cluster, of which the
        worker counts whose steps take longest. Batch normalizations and interactions are
        found where the rules of fusion were asked about its graph.

    Raises:
      TraceError: it has no steps, or does not know which op feeds which.
    """
    kinds = _KINDS_OF_CLUSTERS if trace.meta.task else _KINDS
    if trace.on_a_gpu:
        kinds = tuple(kind for kind in kinds if kind not in _OF_CORES)
    if trace.meta.task and len(trace.steps()):
        trace = of_client(trace, slowest_client(trace))
    account = step_account(trace)
    claims = [claim for kind in kinds if (claim := kind(account)) is not None]
    worth = [c for c in claims if account.per_step(c.share) >= _WORTH * account.step_ns]
    wait_ns = account.per_step(account.waits)
    weighed = [_weighed(account, claim, wait_ns) for claim in worth]
    others = frozenset(claim.key for claim in worth if claim.of_machine)
    return Findings(
        trace=trace,
        steps=account.steps,
        step_ns=account.step_ns,
        verdict=buffer_verdict(trace) or _unstaged_verdict(account),
        findings=tuple(_ranked(weighed, others, account.step_ns)),
        wait_ns=wait_ns,
        not_explained_ns=_not_explained(account, worth),
        fill=fill_over_time(trace),
    )


def _weighed(account: StepAccount, claim: Claim, wait_ns: float) -> Finding:
    cost = account.per_step(claim.share)
    waits = account.per_step(np.minimum(claim.share, account.waits)) / wait_ns if wait_ns else 0.0
    first = claim.nodes[:_MOST_NODES]
    sources = account.trace.nodes["source"].to_numpy(object)
    lines = dict.fromkeys(sources[node] for node in first if sources[node])
    return Finding(
        key=claim.key,
        title=claim.title,
        evidence=claim.evidence,
        cost_ns=cost,
        gain_ns=claim.at_most_ns,
        wait_share=waits,
        is_cause=waits >= _CAUSE and wait_ns >= _WAITS * account.step_ns,
        mend=claim.mend,
        toggle=claim.toggle,
        nodes=tuple(account.name[node] for node in first),
        sources=tuple(lines)[:_MOST_SOURCES],
    )


def _ranked(findings: list[Finding], others: Set[str], step_ns: float) -> list[Finding]:
    """The findings by their cost; the cause of the wait first, where it costs as much as any.

    Args:
      findings: in any order.
      others: the keys of those that other programs cause. A program is to know its own faults
        first, on a busy machine as well.
      step_ns: the time of a step.
    """
    most = max((f.cost_ns for f in findings if f.key not in others), default=0.0)

    def rank(finding: Finding) -> tuple[bool, bool, float, str]:
        is_first = finding.is_cause and finding.cost_ns >= _CAUSE_FIRST * most
        comes_later = finding.key in others and most >= _OWN_FAULT * step_ns
        return comes_later, not is_first, -finding.cost_ns, finding.key

    return sorted(findings, key=rank)


def _not_explained(account: StepAccount, claims: Iterable[Claim]) -> float:
    """Time in a step that is wait, and of which no claim says why."""
    known = np.zeros(len(account.dur_ns))
    for claim in claims:
        known += claim.share
    return account.per_step(np.maximum(account.waits - known, 0))


def _unstaged_verdict(account: StepAccount) -> Verdict:
    """What bounds steps without a stage: by what only the batch needs of the critical path."""
    front = account.per_step(account.of_nodes(batch_only(account))) / account.step_ns
    path = f"the critical path of {duration(account.step_ns)}"
    needs = f"what needs only the batch is {share(front)} of {path}"
    if not front:
        needs = f"nothing that needs only the batch is on {path}"
    seen = f"{needs}. There is no stage, so no buffer whose fill shows it"
    if front >= _MOSTLY:
        return Verdict(bound="input", words=f"The input is the bottleneck: {seen}.")
    return Verdict(bound="step", words=f"The step is the bottleneck, not its input: {seen}.")

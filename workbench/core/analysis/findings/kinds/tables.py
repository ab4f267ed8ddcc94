"""Tables that are touched whole in each step: copied when read, or updated by dense gradients."""

from __future__ import annotations

import re

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.kinds.lookups import lookup_scope
from workbench.core.analysis.findings.kinds.optimizer import whole_updates
from workbench.core.analysis.findings.sentences import longest, named
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import counted, duration

# A read that hands over a reference takes about a µs; one that lasts longer copies the variable.
_COPIES_NS = 50_000
_READS = frozenset({"ReadVariableOp", "_ReadVariablesOp"})
# A dense update, and what sums the gradients of looked-up rows into a tensor of the whole table.
_DENSE_UPDATE = re.compile(r"(Resource)?Apply[A-Z]")
_SUMS_ROWS = frozenset({"UnsortedSegmentSum"})
# Compute on each element of a tensor, or on all of them.
_ON_EACH = frozenset(
    {
        *("Add", "AddV2", "All", "Any", "Cast", "Equal", "IsFinite", "IsNan", "Maximum", "Mul"),
        *("Neg", "NotEqual", "RealDiv", "Rsqrt", "Sqrt", "Square", "Sub"),
    }
)
# Between the two, what passes a gradient on as large as it is.
_PASSES_ON = frozenset({"Identity", "Reshape", "Cast", "AddN", "AddV2", "Mul", "IdentityN"})
_MOST_STEPS_BACK = 4


def copied_tables(account: StepAccount) -> Claim | None:
    """Variables that are copied whole each time they are read."""
    updates, _ = whole_updates(account)
    copies = _usually_last(account, np.isin(account.op, list(_READS)) & ~updates, _COPIES_NS)
    if not copies.any():
        return None
    on_whole = _whole_table_ops(account, copies) & ~updates
    touched = copies | on_whole
    held = account.of_nodes(touched)
    reads, others = (_longest_first(account, which) for which in (copies, on_whole))
    spent, of_others = (float(account.node_ns[which].sum()) for which in (touched, on_whole))
    tables = [table for read in reads if (table := account.variable_of(read)) != read]
    evidence = (
        f"Reads that last as only a copy does: {longest(account, reads, account.node_ns)}"
        f"{f', of {named(account, tables)}' if tables else ''}. A variable that is updated row by "
        "row is copied by each read of all of it; a read that does not copy takes about a µs."
    )
    if others:
        evidence += (
            f" {counted(len(others), 'op')} on copies of whole variables, such as "
            f"{longest(account, others[:1], account.node_ns)}, take {duration(of_others)}."
        )
    fuses = _feeds_lookups(account, copies)
    what = "A variable is" if len(reads) == 1 else f"{len(reads)} variables are"
    return Claim(
        key="copied_table",
        title=f"{what} copied at each step",
        evidence=evidence,
        mend=(
            "Read rows only: fused lookups never copy a table"
            if fuses
            else "Gather rows from the variable itself, and let the optimizer compute on these "
            "rows, as `workbench.ops.fused_update(optimizer)` does"
        ),
        toggle="fused_v2" if fuses else None,
        share=held.astype(float),
        at_most_ns=max(account.per_step(held), spent),
        nodes=(*reads, *others),
    )


def _whole_table_ops(account: StepAccount, copies: np.ndarray) -> np.ndarray:
    """Ops that compute on each element of what was copied, and on nothing else but numbers."""
    inputs = account.inputs
    numbers = np.isin(account.op, ["Const", *_READS]) & ~copies
    reached = copies.copy()
    while True:
        new = [
            node
            for node in np.flatnonzero(np.isin(account.op, list(_ON_EACH)) & ~reached).tolist()
            if any(reached[source] for source in inputs.get(node, []))
            and all(reached[source] or numbers[source] for source in inputs[node])
        ]
        if not new:
            return reached & ~copies
        reached[new] = True


def _feeds_lookups(account: StepAccount, reads: np.ndarray) -> bool:
    """Whether one of these reads feeds a lookup that can be fused."""
    edges = account.trace.edges
    fed = edges["target"].to_numpy(np.int64)[reads[edges["source"].to_numpy(np.int64)]]
    return any(lookup_scope(account.name[node]) for node in fed.tolist())


def _longest_first(account: StepAccount, which: np.ndarray) -> list[int]:
    nodes = np.flatnonzero(which)
    order: list[int] = nodes[np.argsort(-account.node_ns[nodes], kind="stable")].tolist()
    return order


def dense_gradients(account: StepAccount) -> Claim | None:
    """Tables whose looked-up rows get a gradient of the whole table."""
    updates = [
        node
        for node in np.flatnonzero(account.node_runs > 0).tolist()
        if _DENSE_UPDATE.match(account.op[node]) and _summed_rows(account, node)
    ]
    if not updates:
        return None
    updates.sort(key=lambda node: -account.node_ns[node])
    touched = np.zeros(len(account.op), bool)
    for node in updates:
        touched[[node, *_summed_rows(account, node)]] = True
    held = account.of_nodes(touched)
    tables = [account.variable_of(node) for node in updates]
    spent = float(account.node_ns[touched].sum())
    whose = "A table gets" if len(tables) == 1 else f"{counted(len(tables), 'table')} get"
    return Claim(
        key="dense_gradient",
        title=f"{whose} a dense gradient",
        evidence=(
            f"{named(account, tables)}: rows are summed into a gradient as large as the table, and "
            f"`{account.name[updates[0]]}` ({account.op[updates[0]]}) then updates each of its "
            f"rows. Both take {duration(spent)} a step, which grows with "
            "the table, not with the batch."
        ),
        mend="Look rows up in the variable itself: tf.nn.embedding_lookup(table, ids), not "
        "tf.gather of a tensor made from it",
        share=held.astype(float),
        at_most_ns=max(account.per_step(held), spent),
        nodes=tuple(updates),
    )


def _usually_last(account: StepAccount, nodes: np.ndarray, least_ns: int) -> np.ndarray:
    """Which of these nodes last so long as a rule, by their medians, bool [nodes]."""
    events = account.trace.events[~account.staged_event]
    own = events[nodes[events["node"].to_numpy(np.int64)]]
    medians = own["dur_ns"].groupby(own["node"].to_numpy()).median()
    found = np.zeros(len(account.op), bool)
    found[medians.index[medians >= least_ns].to_numpy(np.int64)] = True
    return found


def _summed_rows(account: StepAccount, update: int) -> list[int]:
    """The ops that sum rows into the gradient of an update, directly or passed on."""
    found, last, seen = [], account.inputs.get(update, []), {update}
    for _ in range(_MOST_STEPS_BACK):
        found += [node for node in last if account.op[node] in _SUMS_ROWS]
        passing = [node for node in last if account.op[node] in _PASSES_ON and node not in seen]
        seen.update(passing)
        last = [source for node in passing for source in account.inputs.get(node, [])]
    return found

"""The front of a step: ops that need only the batch, and yet run in the step that consumes it."""

from __future__ import annotations

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.sentences import joined, longest
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.core.graph.op_families import IDS, INPUT, UPDATE
from workbench.core.graph.op_types import (
    FEEDS_A_QUEUE,
    MUTABLE_TABLES,
    PLACEHOLDERS,
    STAGE_TAKE,
    TABLE_CHANGES,
    VARIABLES,
)
from workbench.number_words import counted, duration, share

# Hold or change what a step learns, or differ from run to run: what reads them may not run ahead.
_STATE = VARIABLES | MUTABLE_TABLES | TABLE_CHANGES | FEEDS_A_QUEUE | PLACEHOLDERS
_STATE_BEGINS = (
    *("Random", "ReadVariable", "Resource", "StatefulRandom", "Multinomial", "WorkbenchEmbedding"),
    "_ReadVariable",
)
# Their arguments may be handles; of what an op hands on to a function nothing is known.
_TAKE_HANDLES = (
    *("ReadVariable", "_ReadVariable", "Resource", "LookupTable", "VarIsInitialized", "Workbench"),
    *("Iterator", "PartitionedCall", "Stateful", "Stateless", "While", "If", "Case"),
)
# Below this share of the front it is not worth a second thought whether ids go along.
_MOSTLY_INPUT = 0.8


def batch_only(account: StepAccount) -> np.ndarray:
    """Nodes that depend on a batch and on nothing that a step changes, bool [nodes].

    By the edges of what ran: no variable, table that changes, random number or feed is among
    their ancestors.
    """
    edges = account.trace.edges
    source, target = (edges[name].to_numpy(np.int64) for name in ("source", "target"))
    values, handles = _arguments(account, source, target)
    state = np.isin(account.op, list(_STATE)) | (account.family == UPDATE)
    state |= _begin_with(account, _STATE_BEGINS)
    # A table that a function is handed may be one that changes.
    state[target[handles[source]]] |= _begin_with(account, ("LookupTable",))[
        target[handles[source]]
    ]
    batch = account.is_input | (account.op == STAGE_TAKE) | values
    return _reached(batch, source, target) & ~_reached(state, source, target)


def _arguments(
    account: StepAccount, source: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of a function that are tensors, and those that are handles, both bool [nodes].

    What a function is called with is its batch; of its variables it gets handles.
    """
    argument = account.op == "_Arg"
    takes_handle = _begin_with(account, _TAKE_HANDLES) | (account.family == UPDATE)
    handle = np.zeros(len(account.op), bool)
    handle[source[takes_handle[target]]] = True
    return argument & ~handle, argument & handle


def _begin_with(account: StepAccount, beginnings: tuple[str, ...]) -> np.ndarray:
    """Nodes whose type begins so, bool."""
    return np.array([op.startswith(beginnings) for op in account.op.tolist()], bool)


def _reached(first: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The nodes of a mask and all that come after them."""
    reached = first.copy()
    while True:
        new = target[reached[source]]
        new = new[~reached[new]]
        if not len(new):
            return reached
        reached[new] = True


def front_on_compute_side(account: StepAccount) -> Claim | None:
    """Nothing is staged, or too little: input, parsing and id ops run in the step."""
    front = batch_only(account) & (account.node_runs > 0)
    held = account.of_nodes(front)
    spent, waiting = (
        account.per_step(which) for which in (held, account.of_nodes(front & account.is_input))
    )
    # Of what else needs only the batch, nobody would say that it prepares it.
    if not spent or not (front & np.isin(account.family, (INPUT, IDS))).any():
        return None
    nodes, each_ns = account.charged(held)
    evidence = (
        f"{_who(account, front)} need only the batch: none depends on a variable. They are "
        f"{share(spent / account.step_ns)} of the critical path. Longest: "
        f"{longest(account, nodes, each_ns)}."
    )
    if waiting:
        evidence += f" For {duration(waiting)} of it the step waits for the batch itself."
    staged, reads = len(account.trace.items) > 0, waiting >= _MOSTLY_INPUT * spent
    return Claim(
        key="little_staged" if staged else "nothing_staged",
        title=_title(account, staged, front),
        evidence=evidence,
        mend=_mend(staged, reads),
        toggle="stage" if reads and not staged else "smart_stage",
        share=held.astype(float),
        # The same threads run them, a step earlier.
        at_most_ns=max(waiting, min(spent, account.step_ns - account.least_ns)),
        nodes=nodes,
    )


def _who(account: StepAccount, front: np.ndarray) -> str:
    """The ops of the front by what they do: "2 input or parsing ops and 79 id ops"."""
    kinds = (("input or parsing op", INPUT), ("id op", IDS))
    counts = {words: int((front & (account.family == of)).sum()) for words, of in kinds}
    counts["other"] = int(front.sum()) - sum(counts.values())
    return joined([counted(count, words) for words, count in counts.items() if count])


def _mend(staged: bool, reads: bool) -> str:
    if staged:
        return "Move the stage behind them: SmartStage finds what may run ahead"
    if reads:
        return "Put the batch behind a stage: wb.staged(batch)"
    return "Run them a step ahead: SmartStage finds which may"


def _title(account: StepAccount, staged: bool, front: np.ndarray) -> str:
    if not staged:
        return "Nothing runs ahead while the batch is read and prepared"
    parses = bool((account.family[front] == INPUT).any())
    return f"The batch is {'parsed' if parses else 'prepared'} in the step"

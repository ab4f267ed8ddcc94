"""Tables that their optimizer goes through whole, though a batch asked for some of their rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.sentences import named
from workbench.core.analysis.findings.step_account import StepAccount
from workbench.number_words import counted, duration

# How Adam is built for gradients of rows: a moment decays, then takes the rows in.
_DECAYS = frozenset({"Assign", "AssignVariableOp"})
_TAKES_ROWS = frozenset({"ScatterAdd", "ResourceScatterAdd"})
_MOVES = frozenset({"AssignSub", "AssignSubVariableOp"})
# From a moment to the table, each as large as the table.
_ON_THE_WAY = frozenset({"Add", "AddV2", "Mul", "RealDiv", "Sqrt", "ReadVariableOp"})


def whole_table_updates(account: StepAccount) -> Claim | None:
    """Tables on a CPU of which Adam moves every row, op by op.

    On a GPU these ops stay: the one that would do these updates has a kernel for CPUs alone.
    """
    touched, moves = whole_updates(account)
    touched &= ~account.on_gpu
    moves = [move for move in moves if not account.on_gpu[move]]
    if not moves:
        return None
    moves.sort(key=lambda node: -account.node_ns[node])
    tables = [table for move in moves if (table := account.variable_of(move)) != move]
    held = account.of_nodes(touched)
    spent = float(account.node_ns[touched].sum())
    of = f" of {named(account, tables)}" if tables else ""
    fuses = _is_fused(account, moves)
    are = "A table is" if len(moves) == 1 else f"{counted(len(moves), 'table')} are"
    return Claim(
        key="whole_table_update",
        title=f"{are} updated whole at each step",
        evidence=(
            f"Adam moves every row{of}: {counted(int(touched.sum()), 'op')}, "
            f"`{account.name[moves[0]]}` among them, each go through a table or a moment of it. "
            f"They take {duration(spent)} a step, which grows with the tables, not with the batch."
        ),
        mend="Let one op do these updates, in one pass of tables and moments"
        if fuses
        else "Change the batch's rows alone: no rule of fusion has one op do these updates",
        toggle="auto_fused" if fuses else None,
        share=held.astype(float),
        at_most_ns=max(account.per_step(held), spent),
        nodes=tuple(np.flatnonzero(touched)[np.argsort(-account.node_ns[touched])].tolist()),
    )


def _is_fused(account: StepAccount, moves: list[int]) -> bool:
    """Whether a rule of fusion has one op do some of the updates, as far as rules were asked."""
    known = account.trace.meta.not_fusable is not None
    return not known or bool((account.trace.nodes["fusable"].iloc[moves] != "").any())


def whole_updates(account: StepAccount) -> tuple[np.ndarray, list[int]]:
    """The ops of updates that go through whole tables, bool [nodes], and those that end them."""
    touched = np.zeros(len(account.op), bool)
    moves: list[int] = []
    for move in np.flatnonzero(np.isin(account.op, list(_MOVES))).tolist():
        for way in _ways_from_moments(account, move):
            decays = _decays_of(account, way[-1])
            if decays:
                touched[[*way, *decays]] = True
                moves.append(move)
            for decay in decays:
                touched[_decayed(account, decay)] = True
    touched &= account.node_runs > 0
    return touched, list(dict.fromkeys(moves))


def _ways_from_moments(account: StepAccount, move: int) -> Iterator[list[int]]:
    """The nodes from what moves a table back to what takes rows into a moment, both included."""
    ways = [[move]]
    while ways:
        way = ways.pop()
        node = way[-1]
        if account.op[node] in _TAKES_ROWS:
            yield way
        elif node == move or account.op[node] in _ON_THE_WAY:
            # Of handles a read waits for the update.
            waits = account.before.get(node, ()) if account.op[node] == "ReadVariableOp" else ()
            ways += [[*way, each] for each in (*account.inputs.get(node, ()), *waits)]


def _decays_of(account: StepAccount, rows: int) -> list[int]:
    """What decays a moment before it takes rows in."""
    slots = set(account.inputs.get(rows, ()))
    return [
        node
        for node in account.before.get(rows, ())
        if account.op[node] in _DECAYS and slots & set(account.inputs.get(node, ()))
    ]


def _decayed(account: StepAccount, decay: int) -> list[int]:
    """The nodes that read a moment, and scale it for its decay."""
    scaled = [node for node in account.inputs.get(decay, ()) if account.op[node] == "Mul"]
    read = [source for node in scaled for source in account.inputs.get(node, ())]
    return scaled + [node for node in read if account.op[node] == "ReadVariableOp"]

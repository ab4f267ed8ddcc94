"""Tables that their optimizer goes through whole, though a batch asked for some of their rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from workbench.core.analysis.findings.finding import Claim
from workbench.core.analysis.findings.inputs import variable_of
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
    """Tables of which Adam moves every row, op by op."""
    touched, moves = whole_updates(account)
    if not moves:
        return None
    moves.sort(key=lambda node: -account.node_ns[node])
    tables = [table for move in moves if (table := variable_of(account, move)) != move]
    held = account.of_nodes(touched)
    spent = float(account.node_ns[touched].sum())
    of = f" of {named(account, tables)}" if tables else ""
    are = "A table is" if len(moves) == 1 else f"{counted(len(moves), 'table')} are"
    return Claim(
        key="whole_table_update",
        title=f"{are} updated whole at each step",
        evidence=(
            f"Adam moves every row{of}: {counted(int(touched.sum()), 'op')}, "
            f"`{account.name[moves[0]]}` among them, each go through a table or a moment of it. "
            f"They take {duration(spent)} a step, which grows with the tables, not with the batch."
        ),
        mend="Let one op do these updates, in one pass of tables and moments",
        toggle="auto_fused",
        share=held.astype(float),
        at_most_ns=max(account.per_step(held), spent),
        nodes=tuple(np.flatnonzero(touched)[np.argsort(-account.node_ns[touched])].tolist()),
    )


def whole_updates(account: StepAccount) -> tuple[np.ndarray, list[int]]:
    """The ops of updates that go through whole tables, bool [nodes], and those that end them."""
    touched = np.zeros(len(account.op), bool)
    moves: set[int] = set()
    edges = _Edges(account)
    for rows in np.flatnonzero(np.isin(account.op, list(_TAKES_ROWS))).tolist():
        slots = set(edges.inputs.get(rows, ()))
        decays = [
            node
            for node in edges.before.get(rows, ())
            if account.op[node] in _DECAYS and slots & set(edges.inputs.get(node, ()))
        ]
        ways = list(_ways_to_a_table(account, edges, rows)) if decays else []
        if not ways:
            continue
        touched[[rows, *decays]] = True
        for decay in decays:
            touched[_decayed(account, edges, decay)] = True
        for way in ways:
            touched[way] = True
            moves.add(way[-1])
    touched &= account.node_runs > 0
    return touched, sorted(moves)


class _Edges:
    """Who reads and waits for whom: of each node its inputs, those before it, those behind it."""

    def __init__(self, account: StepAccount) -> None:
        self.inputs: dict[int, list[int]] = {}
        self.before: dict[int, list[int]] = {}
        self.behind: dict[int, list[int]] = {}
        edges = account.trace.edges
        columns = (edges[name].tolist() for name in ("source", "target", "control"))
        for source, target, control in zip(*columns, strict=True):
            (self.before if control else self.inputs).setdefault(target, []).append(source)
            # Of handles a read waits for the update.
            if not control or account.op[target] == "ReadVariableOp":
                self.behind.setdefault(source, []).append(target)


def _decayed(account: StepAccount, edges: _Edges, decay: int) -> list[int]:
    """The nodes that read a moment, and scale it for its decay."""
    scaled = [node for node in edges.inputs.get(decay, ()) if account.op[node] == "Mul"]
    read = [source for node in scaled for source in edges.inputs.get(node, ())]
    return scaled + [node for node in read if account.op[node] == "ReadVariableOp"]


def _ways_to_a_table(account: StepAccount, edges: _Edges, rows: int) -> Iterator[list[int]]:
    """The nodes from a moment to what moves the table by it, the last one included."""
    ways = [[node] for node in edges.behind.get(rows, ())]
    while ways:
        way = ways.pop()
        if account.op[way[-1]] in _MOVES:
            yield way
        elif account.op[way[-1]] in _ON_THE_WAY:
            ways += [[*way, node] for node in edges.behind.get(way[-1], ())]

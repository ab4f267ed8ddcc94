"""A seed → a Program of the asked kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from tests.fuzz.program import (
    KERAS_OPTIMIZERS,
    OPTIMIZERS,
    PARTS,
    Edit,
    Ids,
    Part,
    Program,
    Run,
    Table,
)

_T = TypeVar("_T")
# How often each part is drawn; a part by itself is no less likely for what it costs.
_WEIGHTS = {
    "lookup": 6,
    "sparse": 6,
    "again": 3,
    "join": 3,
    "dense": 3,
    "norm": 2,
    "dot": 2,
    "fm": 2,
    "identity": 1,
    "around": 4,
    "change": 2,
    "cond": 1,
    "while": 1,
    "loss": 1,
    "metric": 2,
}
_EFFECTS = ("around", "change")


class Draw:
    """Draws values from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.RandomState(seed)

    def one_of(self, options: Sequence[_T]) -> _T:
        """One of the options."""
        return options[self.random.randint(len(options))]

    def chance(self, share: float) -> bool:
        """True in that share of the draws."""
        return bool(self.random.rand() < share)

    def between(self, least: int, most: int) -> int:
        """A number, both ends included."""
        return int(self.random.randint(least, most + 1))


def draw(kind: str, seed: int) -> Program:
    """The program of a seed.

    Args:
      kind: "fused", "smart" or "function".
      seed: draws everything.
    """
    a = Draw(seed)
    in_graph, parts = kind != "function", _parts(a, kind)
    refs = kind == "fused" and a.chance(0.2)
    optimizers = OPTIMIZERS if in_graph else OPTIMIZERS + KERAS_OPTIMIZERS
    program = Program(
        seed=seed,
        batch=a.one_of((3, 4, 6, 8, 32)),
        known_batch=a.chance(0.4),
        source="iterator"
        if kind == "smart"
        else a.one_of(("default", "default", "placeholder", "iterator"))
        if in_graph
        else "default",
        tables=tuple(_table(a, refs) for _ in range(a.between(1, 4))),
        ids=tuple(_ids(a) for _ in range(a.between(1, 4))),
        parts=parts,
        optimizers=tuple(a.one_of(optimizers) for _ in range(1 if a.chance(0.75) else 2)),
        losses=a.one_of(("summed", "summed", "own")),
        ordered=a.chance(0.4),
        clipped=a.chance(0.08),
        grappler=a.chance(0.25),
        threads=a.one_of((0, 0, 1, 3)),
        executor=a.one_of(("", "", "", "inline", "normal")) if in_graph else "",
        way=a.one_of(("graph",) * 5 + ("graph_def", "meta_graph")) if kind == "fused" else "graph",
        control_v2=a.chance(0.4) or not in_graph,
        outside=not in_graph and a.chance(0.15),
        runs=_runs(a, kind, any(each.kind == "around" for each in parts)),
    )
    edit = _edit(a, program) if kind == "fused" and a.chance(0.25) else None
    return dataclasses.replace(program, edit=edit)


def _table(a: Draw, refs: bool) -> Table:
    dtype = "float32" if a.chance(0.92) else a.one_of(("float64", "float16"))
    return Table(
        rows=a.between(10, 50),
        dim=a.one_of((8, 8, 8, 4, 16)),
        dtype=dtype,
        resource=not refs or a.chance(0.3),
    )


def _ids(a: Draw) -> Ids:
    form = a.one_of(("dense", "dense", "matrix", "parts", "text"))
    return Ids(
        form=form,
        depth=a.one_of((0, 0, 2, 3)) if form == "dense" else a.one_of((1, 2, 3)),
        dtype=a.one_of(("int64", "int64", "int32")) if form != "text" else "int64",
        slow=a.chance(0.1),
        behind=a.chance(0.3),
    )


def _parts(a: Draw, kind: str) -> tuple[Part, ...]:
    kinds = list(_WEIGHTS)
    weights = np.array([float(_WEIGHTS[each]) for each in kinds])
    if kind == "smart":
        weights[kinds.index("change")] = 0.5
    # Something to compute with first, then anything.
    drawn = [a.one_of(("lookup", "sparse")) for _ in range(a.between(1, 4))]
    count = a.between(2, 9)
    drawn += [str(each) for each in a.random.choice(kinds, count, p=weights / weights.sum())]
    if a.chance(0.3):
        drawn.insert(0, "around")
    parts = [part(a, each, number) for number, each in enumerate(drawn)]
    if kind == "fused" and a.chance(0.12):
        parts += _read_before_a_change(a, len(parts))
    if kind == "fused" and a.chance(0.1):
        parts += _checked_block(a, len(parts))
    return tuple(parts)


def _read_before_a_change(a: Draw, number: int) -> tuple[Part, Part]:
    """Rows of a table's value, where the table changes as soon as the value is read."""
    lookup, change = part(a, "lookup", number), part(a, "change", number + 1)
    wishes = {**lookup.choices, "way": "read_value", "table": change["table"], "trained": False}
    return dataclasses.replace(lookup, choices=wishes), change


def _checked_block(a: Draw, number: int) -> tuple[Part, Part]:
    """A block around which a check stands that nothing else waits for."""
    check, block = part(a, "around", number), part(a, a.one_of(("dot", "fm", "norm")), number + 1)
    return (
        dataclasses.replace(check, choices={**check.choices, "what": "assert", "length": 1}),
        dataclasses.replace(block, choices={**block.choices, "before": True}),
    )


def part(a: Draw, kind: str, number: int) -> Part:
    """A part whose choices are drawn."""
    return Part(kind, number, {name: a.one_of(values) for name, values in PARTS[kind].items()})


def _runs(a: Draw, kind: str, checked: bool) -> tuple[Run, ...]:
    def picks() -> tuple[int, ...]:
        return tuple(a.between(0, 10**6) for _ in range(4))

    runs = [Run("train", picks=picks())]
    if kind == "smart":
        more = [Run(a.one_of(("train", "fetch")), picks=picks(), trains=True) for _ in range(3)]
        return (*runs, *more)
    if kind == "function":
        return (*runs * 2, Run("fail", picks=picks()), *runs)
    for _ in range(a.between(2, 4)):
        what = a.one_of(("train", "fetch", "fetch", "feed", "feed", "feed", "metric", "fail"))
        how = a.one_of(("run", "run", "run", "callable", "partial"))
        runs.append(Run(what, how, picks(), trains=a.chance(0.4)))
    if checked and a.chance(0.5):
        runs.append(Run("fail", picks=picks(), trains=a.chance(0.4)))
    return tuple(runs)


def _edit(a: Draw, program: Program) -> Edit | None:
    part = a.one_of(program.parts)
    name = a.one_of(tuple(part.choices))
    others: tuple[Any, ...] = tuple(
        value for value in dict.fromkeys(PARTS[part.kind][name]) if value != part[name]
    )
    return Edit(part.number, name, a.one_of(others)) if others else None

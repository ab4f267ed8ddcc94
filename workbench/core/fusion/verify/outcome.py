"""Outcome: what one run of both sides says of a replaced node."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from workbench.core.fusion.verify.compare import (
    Difference,
    difference,
    rounded_otherwise,
    rows_difference,
    widened,
)
from workbench.core.fusion.verify.inputs import Inputs, first_line
from workbench.core.fusion.verify.replaced import ReplacedNode
from workbench.core.fusion.verify.sides import Side
from workbench.core.fusion.verify.verification import (
    DIFFERS,
    NOT_VERIFIED,
    ROUNDED,
    SAME,
    Verdict,
)

# Of one number that is nothing but rounding, a single draw may happen to be near the first.
_DRAWS = 4
_VARIES = "TensorFlow's own result varies from run to run"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is known of a node; its attributes are those of a VerifiedPart."""

    verdict: Verdict
    difference: float = 0.0
    relative: float = 0.0
    where: str = ""
    reason: str = ""


def outcomes(
    run: Sequence[ReplacedNode],
    stock: Side,
    fused: Side,
    inputs: Inputs,
    variables: Mapping[Any, str],
) -> Iterator[tuple[ReplacedNode, Outcome]]:
    """Runs nodes on both sides, and says of each how it compares.

    Args:
      run: the nodes, computed at once.
      stock, fused: the sides.
      inputs: what both run on.
      variables: names of variables' nodes by what tells them apart.
    """
    # Of an op with several outputs a plan may make those alone that are read.
    tensors = {node.name: fused.outputs(node.name) if node.gives else [] for node in run}
    stock_run = _Run(run, stock, tensors)
    try:
        judge = _Judge(stock_run, inputs)
    except tf.errors.OpError as error:
        reason = f"the graph's own run fails: {first_line(error)}"
        yield from _one_by_one(run, stock, fused, inputs, variables, NOT_VERIFIED, reason)
        return
    try:
        judge.fused_values = _Run(run, fused, tensors).values()
    except (tf.errors.OpError, ValueError) as error:
        reason = f"the plan's run fails, and the graph's own does not: {first_line(error)}"
        yield from _one_by_one(run, stock, fused, inputs, variables, DIFFERS, reason)
        return
    for node in run:
        names = [name for name in stock_run.tensors[node.name] if not judge.is_ids_of_rows(name)]
        if node.changes:
            mine = {variables[v] for v in node.variables if v in variables}
            names = [*names, *(name for name in stock_run.variables if name in mine)]
        for name in names:
            yield node, judge.outcome(name)
        if not names:
            yield node, Outcome(verdict=SAME)
    used = {variables[v] for node in run for v in node.variables if v in variables}
    for name in set(stock_run.variables) - used:
        outcome = judge.outcome(name)
        if outcome.verdict not in (SAME, ROUNDED):
            for node in run:
                yield node, outcome


def _one_by_one(
    run: Sequence[ReplacedNode],
    stock: Side,
    fused: Side,
    inputs: Inputs,
    variables: Mapping[Any, str],
    verdict: Verdict,
    reason: str,
) -> Iterator[tuple[ReplacedNode, Outcome]]:
    """Says of each node that a run failed, or, where each can run alone, how that compares."""
    alone = len(run) > 1 and not any(each.changes for each in run)
    for each in run:
        if alone:
            yield from outcomes([each], stock, fused, inputs, variables)
        else:
            yield each, Outcome(verdict=verdict, where=each.name, reason=reason)


class _Run:
    """Nodes that one side computes at once."""

    def __init__(
        self, run: Sequence[ReplacedNode], side: Side, tensors: Mapping[str, list[str]]
    ) -> None:
        self._side = side
        self.tensors = tensors
        self._fetched = [tensor for each in tensors.values() for tensor in each]
        ops = [each.name for each in run if not each.gives]
        self._ops = [*ops, *{name for each in run for name in each.gained}]
        self._changes = any(each.changes for each in run)
        self.variables = list(side.names) if self._changes else []
        self.ids = dict(each.rows for each in run if each.rows and each.rows[0] in self._fetched)

    def values(
        self, variables: Mapping[str, Any] | None = None, feeds: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Values of tensors and, where these change, variables."""
        if variables is not None:
            self._side.load(variables)
        try:
            found = self._side.run(self._fetched, self._ops, feeds)
            return {**found, **(self._side.variables() if self._changes else {})}
        finally:
            if self._changes or variables is not None:
                self._side.load()


class _Judge:
    """Compares the values of both sides, by name."""

    def __init__(self, stock_run: _Run, inputs: Inputs) -> None:
        """Runs the graph's own nodes, twice.

        Raises:
          OpError: they fail.
        """
        self.fused_values: Mapping[str, Any] = {}
        self._stock_run, self._inputs = stock_run, inputs
        self._first = stock_run.values()
        self._varying = self._moved_in(stock_run.values())
        self._draws: list[Mapping[str, Any]] = []
        self._outcomes: dict[str, Outcome] = {}

    def _moved_in(self, again: Mapping[str, Any]) -> frozenset[str]:
        names = [name for name in self._first if not self.is_ids_of_rows(name)]
        return frozenset(n for n in names if not self._difference(n, again).is_rounding)

    def outcome(self, name: str) -> Outcome:
        """How the two values of a tensor or variable compare."""
        if name not in self._outcomes:
            self._outcomes[name] = self._outcome(name)
        return self._outcomes[name]

    def _outcome(self, name: str) -> Outcome:
        if name in self._varying:
            return Outcome(verdict=NOT_VERIFIED, where=name, reason=_VARIES)
        widest = self._difference(name, self.fused_values)
        if widest.same:
            return Outcome(verdict=SAME)
        for number in range(_DRAWS):
            if widest.is_rounding or widest.reason:
                break
            widest = widened(widest, self._difference(name, self._rounded(number)))
        return Outcome(
            verdict=ROUNDED if widest.is_rounding else DIFFERS,
            difference=widest.largest,
            relative=widest.relative,
            where=name,
            reason=widest.reason,
        )

    def _rounded(self, number: int) -> Mapping[str, Any]:
        """What the graph's own nodes give where their inputs are rounded otherwise."""
        while len(self._draws) <= number:
            draw = len(self._draws)
            try:
                values = self._stock_run.values(
                    rounded_otherwise(self._inputs.variables, draw),
                    rounded_otherwise(self._inputs.feeds, draw),
                )
            except tf.errors.OpError:
                values = dict(self._first)
            self._draws.append(values)
        return self._draws[number]

    def is_ids_of_rows(self, name: str) -> bool:
        """Whether a tensor is compared with the rows that it is the ids of."""
        return name in self._stock_run.ids.values()

    def _difference(self, name: str, other: Mapping[str, Any]) -> Difference:
        ids = self._stock_run.ids.get(name)
        if ids is None:
            return difference(self._first[name], other[name])
        pairs = ((values[ids], values[name]) for values in (self._first, other))
        return rows_difference(*pairs)

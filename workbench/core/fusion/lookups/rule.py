"""The rule of embedding lookups, with their gradients and the updates of their tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from workbench.core.fusion.lookups.edit.idle_reads import in_variable
from workbench.core.fusion.lookups.edit.lookup_edit import KIND, LookupEdit
from workbench.core.fusion.lookups.find.dense_gradients import dense_gradients_of
from workbench.core.fusion.lookups.find.dense_lookups import find_dense_lookups
from workbench.core.fusion.lookups.find.gradients import LookupGradient, with_gradients
from workbench.core.fusion.lookups.find.placed import placed
from workbench.core.fusion.lookups.find.shared_tables import with_whole_updates
from workbench.core.fusion.lookups.find.stock_lookups import find_lookups
from workbench.core.fusion.lookups.lookup import StockLookup
from workbench.core.fusion.lookups.lost_waits import lost_waits, variables_of
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.placement import Placement
from workbench.core.fusion.rule import (
    Edit,
    Fused,
    Part,
    Refusal,
    RefusedError,
    Rule,
    Surroundings,
    scope_of,
)
from workbench.number_words import counted

_Lookup = tuple[StockLookup, list[LookupGradient]]


def _find(graph: Definition, placement: Placement) -> tuple[list[Part], list[Refusal]]:
    """The lookups that are fused, with their gradients, and the others."""
    found, refused = find_lookups(graph)
    dense, others = find_dense_lookups(graph)
    refused += others
    kept: list[_Lookup] = []
    lost = lost_waits(graph)
    for own, gradients_of in ((found, with_gradients), (dense, _with_dense_gradients)):
        for lookup in own:
            try:
                _require_kept_waits(graph, lookup, lost)
                asked, gradients = gradients_of(graph, lookup)
                kept.append(placed(graph, placement, in_variable(graph, asked), gradients))
            except RefusedError as refusal:
                refused.append(Refusal(name=lookup.name, reason=str(refusal)))
    parts = [Part(name=each[0].name, match=each) for each in _credited(graph, kept)]
    return parts, refused


def _require_kept_waits(
    graph: Definition, lookup: StockLookup, lost: Mapping[Hashable, str]
) -> None:
    gather = next((lost[each] for each in variables_of(graph, lookup) if each in lost), "")
    if gather:
        raise RefusedError(
            f"{scope_of(gather)} waits for a change of this table, and TensorFlow's graph "
            "optimizer drops that wait: what the table gives depends on time"
        )


def _with_dense_gradients(
    graph: Definition, lookup: StockLookup
) -> tuple[StockLookup, list[LookupGradient]]:
    return lookup, dense_gradients_of(graph, lookup)


def _credited(graph: Definition, lookups: Sequence[_Lookup]) -> list[_Lookup]:
    """The lookups, each gradient with one of those that it could be of.

    Lookups of dense ids that read the same ids of one table have the same gradients: a gradient
    belongs to the lookup whose result leads to it.
    """
    could: dict[str, list[StockLookup]] = {}
    for lookup, gradients in lookups:
        for gradient in gradients:
            could.setdefault(gradient.values, []).append(lookup)

    def owner(gradient: LookupGradient) -> StockLookup:
        own = could[gradient.values]
        given = graph.source(gradient.given).name
        leading = (each for each in own if len(own) > 1 and graph.leads_to(each.result, given))
        return next(leading, own[0])

    return [
        (lookup, [each for each in gradients if owner(each) is lookup])
        for lookup, gradients in lookups
    ]


def _edit(surroundings: Surroundings, parts: Sequence[Part]) -> Edit:
    if not parts:
        return Edit()
    lookups = with_whole_updates(surroundings.graph, [part.match for part in parts])
    return LookupEdit(surroundings, lookups, parts).build()


def _describe(fused: Sequence[Fused]) -> list[str]:
    lines = []
    for op in dict.fromkeys(lookup.op for lookup in fused):
        members = [lookup for lookup in fused if lookup.op == op]
        updated = sum(lookup.updates for lookup in members)
        parts = [f"{op}: {counted(len(members), 'lookup')} in one op"]
        parts += [f"{counted(updated, 'update')} of tables with their gradients"] * bool(updated)
        lines.append("; ".join(parts))
        lines += [f"  {lookup.name}" for lookup in members]
    for op in dict.fromkeys(lookup.note for lookup in fused if lookup.note):
        kept = [lookup for lookup in fused if lookup.note == op]
        lines.append(
            f"{op} updates {counted(len(kept), 'table')} as before, because the update is not "
            "one that a grouped op is known to do alike; workbench.ops.fused_update(optimizer) "
            "changes rows natively"
        )
        lines += [f"  {lookup.name}" for lookup in kept]
    return lines


RULE = Rule(kind=KIND, find=_find, edit=_edit, describe=_describe, is_dense=False)

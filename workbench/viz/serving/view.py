"""Serving view: settings of a served model beside each other, as finished words and fractions.

Every number an outlet shows becomes a string here; pictures come as fractions of their axes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.experiments.serving.findings import ServingFinding, find
from workbench.experiments.serving.points import LoadPoint
from workbench.experiments.serving.results import ServedVariant, ServingComparison
from workbench.viz.comparison.answer import Pieces
from workbench.viz.comparison.chart import shown_label
from workbench.viz.comparison.environment import environment_pairs, setting_pairs
from workbench.viz.serving.answer import best_label, more_news, serving_answer
from workbench.viz.serving.code import serving_code, session_code
from workbench.viz.serving.load_chart import LoadChart
from workbench.viz.serving.load_charts import load_charts
from workbench.viz.serving.loads import load_name, row_counts, rows_name, telling_load
from workbench.viz.serving.receipt import AnswerReceipt, answer_receipt
from workbench.viz.serving.request_lanes import RequestLanes, Sent, request_lanes
from workbench.viz.serving.tables import limit_table, points_table, settings_table
from workbench.viz.serving.throughput import Throughput, throughput
from workbench.viz.style.plain_text import plain
from workbench.viz.style.table import Table

_NOTHING = "The measured points show nothing that holds the requests up."


@dataclasses.dataclass(frozen=True, kw_only=True)
class FindingRow:
    """One finding of a setting: what is wrong, its numbers, what mends it.

    `others` names the other settings with a finding of the same kind; "" where there is none.
    """

    label: str
    others: str
    title: str
    evidence: str
    mend: str
    toggle: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServingView:
    """A served model, ready for every outlet.

    Attributes:
      program: its name. signature: what of it was called.
      sentence: the answer, as (text, strong) pieces.
      next_step: what to do with it.
      news: what else the best setting changes, a sentence each.
      throughput: requests a second of every setting, as bars.
      charts: latency against load, a picture for each kind of load and number of rows.
      lanes: requests over time, of the baseline and the best setting; None where none was kept.
      findings: what holds the requests up. nothing: said where there is none; else "".
      receipt: whether the settings answer alike.
      limits: the rates at the limit of the p99; None where they were not searched.
      counts, tries: whether the pictures have numbers of clients, and rates that were tried.
      points, serves: tables of all loads, and of what each setting serves with.
      requests_from: where the requests came from.
      notes: what a reader must know, a sentence each.
      settings, environment: (name, value) pairs.
      in_program: code of a session with the best setting; "" where nothing is switched.
      code: what measures it again: the command, or the cell where Python asked.
      taken_at: when it was measured, "" where that is not known.
    """

    program: str
    signature: str
    sentence: Pieces
    next_step: str
    news: tuple[str, ...]
    throughput: Throughput
    charts: tuple[LoadChart, ...]
    lanes: RequestLanes | None
    findings: tuple[FindingRow, ...]
    nothing: str
    receipt: AnswerReceipt
    limits: Table | None
    counts: bool
    tries: bool
    points: Table
    serves: Table
    requests_from: str
    notes: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    in_program: str
    code: str
    taken_at: str


def serving_view(comparison: ServingComparison) -> ServingView:
    """The view of a measurement of a served model."""
    findings = find(comparison)
    best = best_label(comparison)
    answer = serving_answer(comparison, findings)
    notes = [plain(note) for variant in comparison.variants for note in variant.notes]
    charts = load_charts(comparison, best)
    return ServingView(
        program=plain(comparison.program),
        signature=plain(comparison.signature),
        sentence=answer.sentence,
        next_step=answer.next_step,
        news=more_news(comparison),
        throughput=throughput(comparison),
        charts=charts,
        lanes=_lanes(comparison, best),
        findings=_rows(findings),
        nothing="" if findings else _NOTHING,
        receipt=answer_receipt(comparison),
        limits=limit_table(comparison),
        counts=any(mark.short for chart in charts for line in chart.lines for mark in line.marks),
        tries=any(line.tried for chart in charts for line in chart.lines),
        points=points_table(comparison),
        serves=settings_table(comparison),
        requests_from=plain(comparison.requests_from),
        notes=tuple(dict.fromkeys(notes)),
        settings=setting_pairs(comparison.settings),
        environment=environment_pairs(comparison.environment),
        in_program=_in_program(comparison, best),
        code=comparison.command or serving_code(comparison),
        taken_at=_moment(comparison.taken_at),
    )


def _in_program(comparison: ServingComparison, best: str | None) -> str:
    """How the best setting is switched on in a program of one's own."""
    variant = comparison.variant(best) if best else None
    if variant is None or variant.optimizations.is_all_off:
        return ""
    return session_code(variant, comparison.signature, _cores(comparison))


def _rows(findings: Sequence[ServingFinding]) -> tuple[FindingRow, ...]:
    """A row for each kind, with the numbers of the first setting that has it."""
    by_kind: dict[str, list[ServingFinding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.key, []).append(finding)
    return tuple(_row(first, rest) for first, *rest in by_kind.values())


def _row(finding: ServingFinding, others: Sequence[ServingFinding]) -> FindingRow:
    return FindingRow(
        label=shown_label(plain(finding.label)),
        others=", ".join(plain(other.label) for other in others),
        title=finding.title,
        evidence=plain(finding.evidence),
        mend=plain(finding.mend),
        toggle=finding.toggle,
    )


def _lanes(comparison: ServingComparison, best: str | None) -> RequestLanes | None:
    """The requests of the baseline and of the best setting, under the load that is told."""
    rows = row_counts(comparison)[0]
    load = telling_load(comparison, rows)
    shown = [comparison.baseline, *([comparison.variant(best)] if best else [])]
    words = ", ".join(filter(None, [load_name(load), rows_name(rows)]))
    return request_lanes(
        [(_label(variant), _sent(variant.point(load, rows))) for variant in shown],
        load=words[:1].upper() + words[1:],
        cores=_cores(comparison),
    )


def _cores(comparison: ServingComparison) -> int:
    return int(comparison.environment.get("cores", 0)) or 1


def _sent(point: LoadPoint) -> list[Sent]:
    return [
        Sent(
            client=span.client,
            arrival_ns=span.arrival_ns,
            start_ns=span.start_ns,
            end_ns=span.end_ns,
            failed=span.failed,
        )
        for span in point.spans
    ]


def _label(variant: ServedVariant) -> str:
    return shown_label(plain(variant.label))


def _moment(taken_at: str) -> str:
    """A moment as ISO 8601 has it, for readers: "2026-11-29 08:03 UTC"."""
    date, mark, clock = plain(taken_at).partition("T")
    return f"{date} {clock[:5]} UTC" if mark else date

"""A served model as plain text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from workbench.viz.serving.throughput import BarGroup
from workbench.viz.serving.view import FindingRow, ServingView
from workbench.viz.style.plain_text import aligned, plain, wrapped
from workbench.viz.style.table import Table, table_lines

_INDENT = "    "
_LONG = ("p90", "p99, 95\u00a0%", "Cores at work")


def serving_text(view: ServingView) -> str:
    """The answer in a sentence, the settings as a table, the findings, then what it rests on."""
    lines = wrapped(f"{view.program}: {''.join(text for text, _ in view.sentence)}")
    for line in view.news:
        lines += wrapped(line)
    lines += wrapped(f"Next: {view.next_step}")
    for group in view.throughput.groups:
        lines += ["", f"{group.heading}:", *_group(group)]
    if view.limits:
        lines += ["", f"{view.limits.caption}:", *table_lines(view.limits)]
    lines += [
        "",
        *_findings(view),
        "",
        f"{view.points.caption}:",
        *table_lines(_short(view.points)),
    ]
    lines += ["", f"{view.serves.caption}:", *table_lines(view.serves), ""]
    lines += [*wrapped(f"{view.throughput.caption}."), *wrapped(view.receipt.sentence)]
    for name, result, _ in view.receipt.checks:
        lines += wrapped(f"{name}: {result}.")
    lines += wrapped(f"Requests: {view.requests_from}")
    for note in view.notes:
        lines += wrapped(note)
    if view.code:
        lines += ["", "Measure it again:", *map(plain, view.code.splitlines())]
    if view.in_program:
        lines += ["", "In a program of your own:", *map(plain, view.in_program.splitlines())]
    return "\n".join(lines)


def _short(points: Table) -> Table:
    """The table of all loads without what makes its lines too long for a terminal."""
    kept = [number for number, head in enumerate(points.heads) if head not in _LONG]
    return dataclasses.replace(
        points,
        heads=tuple(points.heads[number] for number in kept),
        rows=tuple(tuple(row[number] for number in kept) for row in points.rows),
    )


def _group(group: BarGroup) -> list[str]:
    heads = ["Setting", "requests/s", "ratio", "95\u00a0%", "p50", "p99", "p99 ratio", "verdict"]
    rows = [
        [
            row.label,
            f"{row.rate} {row.half}".rstrip(),
            row.ratio,
            row.interval,
            row.p50,
            row.p99,
            f"{row.p99_ratio} {row.p99_range}".strip(),
            row.verdict,
            row.answers,
        ]
        for row in group.rows
    ]
    table = aligned([[*heads, "answers"], *rows], left={0, len(heads) - 1, len(heads)})
    return [plain(line) for line in table]


def _findings(view: ServingView) -> Iterator[str]:
    if view.nothing:
        yield view.nothing
    for number, finding in enumerate(view.findings):
        if number:
            yield ""
        yield from _finding(finding)


def _finding(finding: FindingRow) -> Iterator[str]:
    others = f", and {finding.others}" if finding.others else ""
    yield f"{finding.title} ({finding.label}{others})"
    yield from wrapped(finding.evidence, _INDENT)
    toggle = f" Toggle: {finding.toggle}." if finding.toggle else ""
    yield from wrapped(f"Mend: {finding.mend}{toggle}", _INDENT)

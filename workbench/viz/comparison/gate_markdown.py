"""The verdict of a gate as Markdown, as GitHub shows it below a pull request.

What a user or a file has named may hold anything: it stands in `<code>`, each sign that Markdown or
HTML could read as its number, so that it makes no cell of a table, no link, mention or tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from workbench.errors import one_line
from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.equivalence import asked_otherwise
from workbench.experiments.regression.gate import Checked, Gate
from workbench.experiments.regression.regressions import Regression
from workbench.viz.comparison.gate_text import HEADLINES, gate_sentence, percent
from workbench.viz.style import format

_SIGNS = {"holds": "✅", "slower": "❌", "not shown": "❔"}
_MOST_NODES, _MOST_VARIANTS, _LONGEST = 8, 4, 120
_READ_AS_MORE = re.compile(r"[^\w ,+%()-]|_")


def gate_markdown(gate: Gate, comparison: Comparison, longer: Sequence[Regression] = ()) -> str:
    """A summary for a pull request: verdict, variants, ops that take longer, command."""
    sentence = gate_sentence(gate, code)
    lines = [
        f"### {_SIGNS[gate.standing]} Workbench: {HEADLINES[gate.standing].lower()}, "
        f"{code(comparison.program)}",
        "",
        f"{sentence[:1].upper()}{sentence[1:]}",
        "",
        *_table(gate, comparison),
        "",
        *(f"- {code(note, len(note))}" for note in gate.notes),
        *([""] if gate.notes else []),
    ]
    for regression in longer[:_MOST_VARIANTS]:
        lines += _longer(regression)
    lines += [*_environment(comparison), "", *_fenced(one_line(comparison.command))]
    return "\n".join(lines) + "\n"


def code(text: str, most: int = _LONGEST) -> str:
    """Any text in a line of Markdown, or in a cell of a table, as it is.

    Args:
      text: what to show.
      most: characters of it that are shown.
    """
    shown = one_line(text)
    if len(shown) > most:
        shown = f"{shown[: most - 1]}…"
    return f"<code>{_READ_AS_MORE.sub(lambda sign: f'&#{ord(sign[0])};', shown)}</code>"


def _table(gate: Gate, comparison: Comparison) -> Iterator[str]:
    variants = {variant.label: variant for variant in comparison.variants}
    trained = dict.fromkeys((check.label for check in comparison.equivalence), True)
    trained |= {check.label: False for check in comparison.equivalence if not check.passed}
    limit = percent(gate.limit)
    yield f"| Variant | steps/s | to {code(gate.against)} | 95 % | gate, {limit} | training |"
    yield "| --- | ---: | ---: | ---: | --- | --- |"
    for each in gate.checked:
        training = _training(comparison, each.label, trained.get(each.label))
        yield _row(each, variants.get(each.label), training)


def _training(comparison: Comparison, label: str, same: bool | None) -> str:
    """Whether a variant trains as the baseline does; names of toggles come from anybody."""
    if label == comparison.baseline:
        return "reference"
    if asked := asked_otherwise(comparison.checks_of(label)):
        words = asked.asked_otherwise
        return f"**{words}**" if asked.stale_lookups else code(words)
    return "not checked" if same is None else "the same" if same else "**not the same**"


def _row(each: Checked, variant: MeasuredVariant | None, training: str) -> str:
    rate = format.UNKNOWN
    if variant is not None:
        known = (variant.steps_per_s, variant.low, variant.high)
        rate = format.rate_between(*known, unit="").rstrip()
    interval = format.ratio_range(each.ratio.low, each.ratio.high)
    verdict = f"{_SIGNS[each.standing]} {each.standing}"
    cells = (code(each.label), rate, format.ratio(each.ratio.value), interval, verdict, training)
    return f"| {' | '.join(cells)} |"


def _longer(regression: Regression) -> Iterator[str]:
    """The ops that take longer, of what was traced."""
    alignment = regression.alignment
    rows = regression.longer(_MOST_NODES)
    a, b = alignment.a.label, alignment.b.label
    yield f"<details><summary>What takes longer in {code(b)} than in {code(a)}"
    yield f"({code(regression.label)}, traced steps)</summary>"
    yield ""
    if rows.empty:
        yield "No op of the traced steps does."
    else:
        yield f"| Node | op | became | {code(a)} | {code(b)} | on the critical path |"
        yield "| --- | --- | --- | ---: | ---: | ---: |"
    columns = ("name", "op", "status", "a_ns", "b_ns", "path_difference_ns")
    for name, op, status, *times in zip(*(rows[each].tolist() for each in columns), strict=True):
        shown = format.duration(times[0]), format.duration(times[1]), format.difference(times[2])
        yield f"| {code(name)} | {code(op)} | {status} | {' | '.join(shown)} |"
    yield ""
    yield "Times are of traced steps; the verdict is of untraced ones."
    yield "</details>"
    yield ""


def _environment(comparison: Comparison) -> Iterator[str]:
    known = comparison.environment
    named = [("CPU", "cpu"), ("cores", "cores"), ("TensorFlow", "tensorflow")]
    words = [f"{name} {code(str(known[key]))}" for name, key in named if key in known]
    yield f"Measured on {', '.join(words)}." if words else "Nothing is known of the machine."


def _fenced(command: str) -> list[str]:
    """A command as a block that nothing in it can end."""
    longest = max(map(len, re.findall("`+", command)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", command, fence]

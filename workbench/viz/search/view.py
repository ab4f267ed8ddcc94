"""Best → what its list shows, every string finished."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Sequence

from workbench.core.options import Optimizations
from workbench.experiments.search.best import Best, Raced
from workbench.experiments.search.expectation import toggle_count
from workbench.viz.comparison.chart import shown_label
from workbench.viz.comparison.receipt import receipt
from workbench.viz.predictions.ratio_axis import RatioAxis, ratio_axis
from workbench.viz.predictions.withheld import Reason, reasons
from workbench.viz.style import format
from workbench.viz.style.plain_text import aligned, plain, wrapped

Pieces = tuple[tuple[str, bool], ...]
# A simpler setting that is at most this much slower is named beside the best.
_NEARLY = 0.02
# Beyond the ratios, an axis has room for intervals up to this factor.
_ROOM = 1.25
_NOT_CLEAR = "Highest ratio, not clearly faster"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """One setting that was measured.

    Attributes:
      label: its name.
      best: whether it was chosen.
      clear: whether its interval excludes 1×.
      ratio, interval: against the baseline; the interval of few rounds says so.
      known: whether there is an interval to draw.
      low, at, high: the same as fractions of the axis.
      low_cut, high_cut: whether the interval goes on beyond the axis.
      predicted: the predicted ratio, and where on the axis; "" and None where there is none.
      rounds: how many it ran.
      outcome: what became of it.
    """

    label: str
    best: bool
    clear: bool
    ratio: str
    interval: str
    known: bool
    low: float
    at: float
    high: float
    low_cut: bool
    high_cut: bool
    predicted: str
    predicted_at: float | None
    rounds: str
    outcome: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchView:
    """A search, ready for every outlet.

    Attributes:
      program: its name.
      sentence: the answer, as (text, strong) pieces.
      receipt: whether the best trains the same.
      spent: how many settings were measured, in which time and memory.
      caption: what the ratios are of.
      rows: the settings that were measured, the best first.
      ticks: (fraction, words) of the axis. one: where 1× is on it.
      predicts: whether a row has a prediction.
      notes: what a reader should know, a sentence each.
      not_measured: reasons, and the settings that were not measured.
      code: the cell that measures it again.
      in_program: what to write in a program of one's own.
    """

    program: str
    sentence: Pieces
    receipt: str
    spent: str
    caption: str
    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]
    one: float
    predicts: bool
    notes: tuple[str, ...]
    not_measured: tuple[Reason, ...]
    code: str
    in_program: str

    def describe(self) -> str:
        """The answer, every setting that was measured, why others were not, and the code."""
        lines = wrapped(f"{self.program}: " + "".join(text for text, _ in self.sentence))
        lines += wrapped(" ".join(filter(None, [self.receipt, self.spent])))
        lines += ["", *self._table(), f"{self.caption}."]
        for note in self.notes:
            lines += wrapped(note)
        for reason in self.not_measured:
            settings = wrapped(f"Not measured: {reason.settings}")
            lines += ["", *settings, *wrapped(reason.words, "    ")]
        lines = [plain(line) for line in lines]
        cell, code = (textwrap.indent(text, "    ") for text in (self.code, self.in_program))
        return "\n".join([*lines, "", "Measure it again:", cell, "", "In a program:", code])

    def _table(self) -> list[str]:
        heads = ["Setting", "ratio", "95\u00a0%", "rounds", "outcome"]
        rows = [[row.label, row.ratio, row.interval, row.rounds, row.outcome] for row in self.rows]
        if self.predicts:
            heads.insert(3, "predicted")
            for cells, row in zip(rows, self.rows, strict=True):
                cells.insert(3, row.predicted)
        return aligned([heads, *rows], left={0, len(heads) - 1})


def search_view(found: Best) -> SearchView:
    """The view of a search."""
    raced = [found.best, *found.runners_up]
    axis = _axis(raced)
    rows = tuple(_row(each, found, axis) for each in raced)
    return SearchView(
        program=plain(found.program),
        sentence=_answer(found),
        receipt=_receipt(found),
        spent=_spent(found),
        caption=f"Steps/s against {_name(found.baseline)}, in the same rounds",
        rows=rows,
        ticks=axis.ticks,
        one=axis.at(1.0),
        predicts=any(row.predicted for row in rows),
        notes=tuple(plain(note) for note in found.notes),
        not_measured=reasons([(each.label, each.reason) for each in found.not_measured]),
        code=found.code,
        in_program=found.in_program,
    )


def _axis(raced: Sequence[Raced]) -> RatioAxis:
    """The axis of all ratios, with room for intervals; wide ones of few rounds are cut."""
    ratios = [each.ratio for each in raced]
    ratios += [each.predicted.ratio for each in raced if each.predicted]
    edges = [edge for each in raced if _known(each) for edge in (each.low, each.high)]
    low, high = min([1.0, *ratios]) / _ROOM, max([1.0, *ratios]) * _ROOM
    return ratio_axis([*ratios, *(min(max(edge, low), high) for edge in edges)])


def _row(each: Raced, found: Best, axis: RatioAxis) -> Row:
    best, known = each is found.best, _known(each)
    baseline = each.optimizations == found.baseline
    return Row(
        label=plain(shown_label(each.label)),
        best=best,
        clear=known and (each.low > 1 or each.high < 1),
        ratio="baseline" if baseline else format.ratio(each.ratio),
        interval="" if baseline else _interval(each),
        known=known and not baseline,
        low=axis.at(each.low),
        at=axis.at(each.ratio),
        high=axis.at(each.high),
        low_cut=each.low < axis.low,
        high_cut=each.high > axis.high,
        predicted=format.ratio(each.predicted.ratio) if each.predicted else "",
        predicted_at=axis.at(each.predicted.ratio) if each.predicted else None,
        rounds=format.integer(each.rounds),
        outcome=_outcome(each, found.baseline, best=best),
    )


def _known(each: Raced) -> bool:
    return each.low > 0 and each.high < math.inf


def _interval(each: Raced) -> str:
    return format.ratio_range(each.low, each.high) if _known(each) else "too few rounds"


def _outcome(each: Raced, baseline: Optimizations, *, best: bool) -> str:
    if best:
        return _NOT_CLEAR if each.optimizations != baseline and not each.low > 1 else "Best"
    words = plain(each.reason)
    words = f"{words[:1].upper()}{words[1:]}" if words else ""
    if each.dropped_s is None:
        return words
    return f"{words}; out after {format.duration(each.dropped_s * 1e9)}"


def _answer(found: Best) -> Pieces:
    best, against = found.best, _name(found.baseline)
    nearest = max(found.runners_up, key=lambda each: each.ratio, default=None)
    if best.optimizations == found.baseline:
        if nearest is None:
            return (("No other setting was measured", True), (".", False))
        said = f". The nearest is {plain(nearest.label)}, {_measured(nearest)}."
        return ((f"No setting is faster than {against}", True), (said, False))
    if not best.low > 1:
        said = f". The nearest is {plain(best.label)}, {_measured(best)}."
        return ((f"No setting is clearly faster than {against}", True), (said, False))
    return (
        ("Best: ", False),
        (f"{plain(best.label)}, {format.ratio(best.ratio)}", True),
        (f" as fast as {against} ({_words_of_interval(best)}).{_simpler(found)}", False),
    )


def _measured(each: Raced) -> str:
    return f"{format.ratio(each.ratio)} ({_words_of_interval(each)})"


def _words_of_interval(each: Raced) -> str:
    if not _known(each):
        return "too few rounds for an interval"
    return f"95{format.NBSP}% interval {_interval(each)}"


def _simpler(found: Best) -> str:
    """A setting with fewer toggles that is nearly as fast, if there is one."""
    best = found.best
    near = [
        each
        for each in found.runners_up
        if each.ratio >= best.ratio * (1 - _NEARLY)
        and each.rounds >= 3
        and toggle_count(each.optimizations) < toggle_count(best.optimizations)
    ]
    if not near:
        return ""
    simplest = min(near, key=lambda each: (toggle_count(each.optimizations), -each.ratio))
    return f" {plain(shown_label(simplest.label))} is simpler and gives {_measured(simplest)}."


def _receipt(found: Best) -> str:
    if found.best.optimizations == found.baseline:
        return ""
    return receipt(found.comparison.checks_of(found.label)).sentence


def _spent(found: Best) -> str:
    measured, others = 1 + len(found.runners_up), len(found.not_measured)
    baseline = found.best.optimizations == found.baseline
    measured -= baseline
    settings = measured + others
    limit = found.memory_limit_bytes
    of = f" of {format.size(limit)}" if limit else ""
    return (
        f"{format.integer(measured)} of {format.integer(settings)} settings measured in "
        f"{format.integer(found.rounds)} rounds; {_seconds(found.took_s)} of a budget of "
        f"{_seconds(found.budget_s)}; {format.size(found.memory_bytes)}{of} of memory at most."
    )


def _seconds(seconds: float) -> str:
    return f"{format.integer(round(seconds))}{format.NBSP}s"


def _name(setting: Optimizations) -> str:
    return "all off" if setting == Optimizations() else plain(setting.label(in_full=True))

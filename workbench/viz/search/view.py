"""Best → what its list shows, every string finished."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Sequence

from workbench.core.optimizations import Optimizations
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


def search_view(search: Best) -> SearchView:
    """The view of a search."""
    settings = [search.best, *search.runners_up]
    axis = _axis(settings)
    rows = tuple(_row(raced, search, axis) for raced in settings)
    return SearchView(
        program=plain(search.program),
        sentence=answer_of(search),
        receipt=_receipt(search),
        spent=spent_of(search),
        caption=f"Steps/s against {_name(search.baseline)}, in the same rounds",
        rows=rows,
        ticks=axis.ticks,
        one=axis.at(1.0),
        predicts=any(row.predicted for row in rows),
        notes=tuple(plain(note) for note in search.notes),
        not_measured=reasons([(unraced.label, unraced.reason) for unraced in search.not_measured]),
        code=search.code,
        in_program=search.in_program,
    )


def _axis(raced: Sequence[Raced]) -> RatioAxis:
    """The axis of all ratios, with room for intervals; wide ones of few rounds are cut."""
    ratios = [each.ratio for each in raced]
    ratios += [each.predicted.ratio for each in raced if each.predicted]
    edges = [edge for each in raced if _known(each) for edge in (each.low, each.high)]
    low, high = min([1.0, *ratios]) / _ROOM, max([1.0, *ratios]) * _ROOM
    return ratio_axis([*ratios, *(min(max(edge, low), high) for edge in edges)])


def _row(raced: Raced, search: Best, axis: RatioAxis) -> Row:
    best, known = raced is search.best, _known(raced)
    baseline = raced.optimizations == search.baseline
    return Row(
        label=plain(shown_label(raced.label)),
        best=best,
        clear=known and (raced.low > 1 or raced.high < 1),
        ratio="baseline" if baseline else format.ratio(raced.ratio),
        interval="" if baseline else _interval(raced),
        known=known and not baseline,
        low=axis.at(raced.low),
        at=axis.at(raced.ratio),
        high=axis.at(raced.high),
        low_cut=raced.low < axis.low,
        high_cut=raced.high > axis.high,
        predicted=format.ratio(raced.predicted.ratio) if raced.predicted else "",
        predicted_at=axis.at(raced.predicted.ratio) if raced.predicted else None,
        rounds=format.integer(raced.rounds),
        outcome=_outcome(raced, search.baseline, best=best),
    )


def _known(raced: Raced) -> bool:
    return raced.low > 0 and raced.high < math.inf


def _interval(raced: Raced) -> str:
    return format.ratio_range(raced.low, raced.high) if _known(raced) else "too few rounds"


def _outcome(raced: Raced, baseline: Optimizations, *, best: bool) -> str:
    if best:
        return _NOT_CLEAR if raced.optimizations != baseline and not raced.low > 1 else "Best"
    words = plain(raced.reason)
    words = f"{words[:1].upper()}{words[1:]}" if words else ""
    if raced.dropped_s is None:
        return words
    return f"{words}; out after {format.duration(raced.dropped_s * 1e9)}"


def answer_of(search: Best) -> Pieces:
    """The answer of a search, as (text, strong) pieces."""
    best, against = search.best, _name(search.baseline)
    nearest = max(search.runners_up, key=lambda raced: raced.ratio, default=None)
    if best.optimizations == search.baseline:
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
        (f" as fast as {against} ({_words_of_interval(best)}).{_simpler(search)}", False),
    )


def _measured(raced: Raced) -> str:
    return f"{format.ratio(raced.ratio)} ({_words_of_interval(raced)})"


def _words_of_interval(raced: Raced) -> str:
    if not _known(raced):
        return "too few rounds for an interval"
    return f"95{format.NBSP}% interval {_interval(raced)}"


def _simpler(search: Best) -> str:
    """A setting with fewer toggles that is nearly as fast, if there is one."""
    best = search.best
    near = [
        raced
        for raced in search.runners_up
        if raced.ratio >= best.ratio * (1 - _NEARLY)
        and raced.rounds >= 3
        and toggle_count(raced.optimizations) < toggle_count(best.optimizations)
    ]
    if not near:
        return ""
    simplest = min(near, key=lambda raced: (toggle_count(raced.optimizations), -raced.ratio))
    return f" {plain(shown_label(simplest.label))} is simpler and gives {_measured(simplest)}."


def _receipt(search: Best) -> str:
    if search.best.optimizations == search.baseline:
        return ""
    return receipt(search.comparison.checks_of(search.label)).sentence


def spent_of(search: Best) -> str:
    """How many settings a search measured, in which time and memory."""
    measured, others = 1 + len(search.runners_up), len(search.not_measured)
    baseline = search.best.optimizations == search.baseline
    measured -= baseline
    settings = measured + others
    limit = search.memory_limit_bytes
    of = f" of {format.size(limit)}" if limit else ""
    return (
        f"{format.integer(measured)} of {format.integer(settings)} settings measured in "
        f"{format.integer(search.rounds)} rounds; {_seconds(search.took_s)} of a budget of "
        f"{_seconds(search.budget_s)}; {format.size(search.memory_bytes)}{of} of memory at most."
    )


def _seconds(seconds: float) -> str:
    return f"{format.integer(round(seconds))}{format.NBSP}s"


def _name(setting: Optimizations) -> str:
    return "all off" if setting.is_all_off else plain(setting.label(in_full=True))

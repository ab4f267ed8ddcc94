"""Measured ceilings → what their list shows, every string finished."""

from __future__ import annotations

import dataclasses
import statistics

from workbench.core.what_if.ceilings import Ceiling, Ceilings, MeasuredStep
from workbench.core.what_if.faster import DENSE_WORK, IDS_WORK, INPUT_WORK, LOOKUP_WORK
from workbench.viz.predictions.ratio_axis import RatioAxis, ratio_axis
from workbench.viz.predictions.withheld import Reason, reason_lines, reasons, sentence
from workbench.viz.style import format
from workbench.viz.style.plain_text import aligned, plain, wrapped

Pieces = tuple[tuple[str, bool], ...]

_CAPTION = "Steps/s against the step with all its work on the same batch"
_WORK = {
    INPUT_WORK: "its input",
    IDS_WORK: "the making of ids",
    LOOKUP_WORK: "embedding lookups, their gradients and updates",
    DENSE_WORK: "its dense part",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class CeilingRow:
    """One step.

    Attributes:
      label: what it is without.
      clear: whether its interval excludes 1×.
      ratio, interval: against the step with all its work on the same batch.
      low, at, high: the same as fractions of the axis.
      simulated, simulated_interval: from the replay of a trace; "" where nothing is.
      simulated_at: as a fraction of the axis; None where nothing is.
      step, rate: median time of a step, steps/s.
      ops: how many executed ops are left out; "" where none is.
    """

    label: str
    clear: bool
    ratio: str
    interval: str
    low: float
    at: float
    high: float
    simulated: str
    simulated_interval: str
    simulated_at: float | None
    step: str
    rate: str
    ops: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class CeilingsView:
    """Measured ceilings, ready for every outlet.

    Attributes:
      title: the program.
      sentence: the answer, as (text, strong) pieces.
      notes: what one batch gives, and how right the simulation is; a sentence or two each.
      rows: the step as it is, on one batch, and without each kind of work.
      ticks: (fraction, words) of the axis. one: where 1× is on it.
      simulated: whether anything is.
      withheld: reasons, and the kinds of work that could not be left out.
      caption: what the ratios are of.
    """

    title: str
    sentence: Pieces
    notes: tuple[str, ...]
    rows: tuple[CeilingRow, ...]
    ticks: tuple[tuple[float, str], ...]
    one: float
    simulated: bool
    withheld: tuple[Reason, ...]
    caption: str = _CAPTION

    def describe(self) -> str:
        """The answer, every step, and what could not be left out."""
        lines = wrapped(f"{self.title}: " + "".join(text for text, _ in self.sentence))
        lines += ["", *self._table(), f"{self.caption}."]
        for note in self.notes:
            lines += wrapped(note)
        lines += reason_lines(self.withheld)
        return "\n".join(plain(line) for line in lines)

    def _table(self) -> list[str]:
        interval = "95\u00a0%"
        heads = ("Step", "measured", interval, "simulated", interval)
        rows = [
            (
                *(row.label, row.ratio, row.interval, row.simulated, row.simulated_interval),
                *(row.step, row.rate, row.ops),
            )
            for row in self.rows
        ]
        return aligned([(*heads, "step", "steps/s", "ops left out"), *rows], left={0})


def ceilings_view(ceilings: Ceilings) -> CeilingsView:
    """The view of measured ceilings."""
    own = _as_it_is(ceilings)
    drawn = [
        edge for ceiling in ceilings.kinds for edge in (ceiling.low, ceiling.ratio, ceiling.high)
    ]
    drawn += [ceiling.simulated.ratio for ceiling in ceilings.kinds if ceiling.simulated]
    axis = ratio_axis([*own, *drawn])
    rows = [
        _row("As it is", ceilings.as_it_is, own, axis),
        _row("One batch", ceilings.one_batch, (1.0, 1.0, 1.0), axis),
        *(_ceiling_row(ceiling, axis) for ceiling in ceilings.kinds),
    ]
    return CeilingsView(
        title=plain(ceilings.program),
        sentence=_sentence(ceilings),
        notes=tuple(note for note in (_one_batch(ceilings), _simulation(ceilings)) if note),
        rows=tuple(rows),
        ticks=axis.ticks,
        one=axis.at(1.0),
        simulated=any(ceiling.simulated for ceiling in ceilings.kinds),
        withheld=reasons([(f"no {work}", why) for work, why in ceilings.withheld]),
    )


def _as_it_is(ceilings: Ceilings) -> tuple[float, float, float]:
    """Low, ratio and high of the step as it is, against one batch."""
    found = (ceilings.one_batch_high, ceilings.one_batch_ratio, ceilings.one_batch_low)
    low, ratio, high = (1 / each for each in found)
    return low, ratio, high


def _row(
    label: str, step: MeasuredStep, found: tuple[float, float, float], axis: RatioAxis
) -> CeilingRow:
    low, ratio, high = found
    same = low == high
    return CeilingRow(
        label=label,
        clear=low > 1 or high < 1,
        ratio=format.ratio(ratio),
        interval="" if same else format.ratio_range(low, high),
        low=axis.at(low),
        at=axis.at(ratio),
        high=axis.at(high),
        simulated="",
        simulated_interval="",
        simulated_at=None,
        step=format.duration(step.step_ms_median * 1e6),
        rate=format.rate(step.steps_per_s, unit="").rstrip(),
        ops="",
    )


def _ceiling_row(each: Ceiling, axis: RatioAxis) -> CeilingRow:
    row = _row(f"No {each.work}", each.step, (each.low, each.ratio, each.high), axis)
    row = dataclasses.replace(row, ops=format.integer(each.ops))
    found = each.simulated
    if found is None:
        return row
    return dataclasses.replace(
        row,
        simulated=format.ratio(found.ratio),
        simulated_interval=format.ratio_range(found.low, found.high),
        simulated_at=axis.at(found.ratio),
    )


def _sentence(ceilings: Ceilings) -> Pieces:
    if not ceilings.kinds:
        return (("No kind of work could be left out.", True),)
    most = ceilings.most
    if most is None:
        nearest = max(ceilings.kinds, key=lambda each: each.ratio)
        return (
            ("No kind of work is shown to bound the step", True),
            (
                f": no interval lies above 1×. The nearest is {_WORK[nearest.work]}, "
                f"{format.ratio(nearest.ratio)} without ({_interval(nearest)}).",
                False,
            ),
        )
    simulated = (
        f"; simulated {format.ratio(most.simulated.ratio)}" if most.simulated is not None else ""
    )
    return (
        (f"Without {_WORK[most.work]} the step is ", False),
        (f"{format.ratio(most.ratio)} as fast", True),
        (f" ({_interval(most)}{simulated}): the most that one kind of work could give.", False),
        (_as_good(most, ceilings), False),
    )


def _as_good(most: Ceiling, ceilings: Ceilings) -> str:
    """Other kinds of work that lie within its interval, or above."""
    near = [
        f"{_WORK[each.work]}, {format.ratio(each.ratio)} without"
        for each in ceilings.kinds
        if each is not most and each.ratio >= most.low
    ]
    return f" As much may: {'; '.join(near)}." if near else ""


def _interval(each: Ceiling) -> str:
    return f"95{format.NBSP}% interval {format.ratio_range(each.low, each.high)}"


def _one_batch(ceilings: Ceilings) -> str:
    """What the batch that is repeated gives by itself, which no ratio has in it."""
    ratio = format.ratio(ceilings.one_batch_ratio)
    low, high = ceilings.one_batch_low, ceilings.one_batch_high
    said = f"{ratio} as fast as on new ones ({format.ratio_range(low, high)})"
    unclear = "" if low > 1 or high < 1 else ", no clear difference"
    return (
        "Every step but the one as it is works on one batch again and again, while the input "
        f"delivers new ones, unless it is left out; with all its work that is {said}{unclear}."
    )


def _simulation(ceilings: Ceilings) -> str:
    errors = [abs(each.error) for each in ceilings.kinds if each.error is not None]
    if not errors:
        problem = ceilings.simulation_problem
        return f"Nothing is simulated. {sentence(problem)}" if problem else ""
    mean = f"{100 * statistics.fmean(errors):.0f}{format.NBSP}%"
    if len(errors) == 1:
        return f"The simulated ratio is off by {mean}."
    return f"Simulated ratios are off by {mean} in the mean of {format.integer(len(errors))}."

"""The verdict of a gate in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.experiments.regression.gate import Checked, Gate
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain

HEADLINES = {"holds": "Holds", "slower": "Slower", "not shown": "Not shown"}


def gate_text(gate: Gate) -> str:
    """The verdict and its notes, a line each."""
    return "\n".join(plain(line) for line in (f"Gate: {gate_sentence(gate)}", *gate.notes))


def gate_sentence(gate: Gate, named: Callable[[str], str] = str) -> str:
    """What was found, in one or two sentences.

    Args:
      gate: the verdict.
      named: a label as the outlet shows it.
    """
    limit = f"more than {percent(gate.limit)} slower than {named(gate.against)}"
    whole = f", by the whole 95{format.NBSP}% interval"
    slower = [each for each in gate.checked if each.standing == "slower"]
    unknown = [each for each in gate.checked if each.standing == "not shown"]
    if slower:
        verb = "are" if len(slower) > 1 else "is"
        return f"slower. {_listed(slower, named)} {verb} {limit}{whole}."
    if unknown:
        several = len(unknown) > 1
        verb, includes = ("are", "intervals include") if several else ("is", "interval includes")
        end = "fails a strict gate" if gate.strict else "passes; measure longer to tell"
        return (
            f"not shown. Whether {_listed(unknown, named)} {verb} {limit} is not known, as the "
            f"{includes} the limit, which {end}."
        )
    count = len(gate.checked)
    who = "The one variant is not" if count == 1 else f"None of {count} variants is"
    return f"holds. {who} {limit}{whole}."


def percent(share: float) -> str:
    """A limit as it was given: "3 %", "0.5 %"."""
    return f"{100 * share:g}{format.NBSP}%"


def _listed(checked: Sequence[Checked], named: Callable[[str], str]) -> str:
    return ", ".join(
        f"{named(each.label)} ({format.ratio(each.ratio.value)}, "
        f"{format.ratio_range(each.ratio.low, each.ratio.high)})"
        for each in checked
    )

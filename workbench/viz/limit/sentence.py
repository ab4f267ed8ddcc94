"""The limit of a step in sentences."""

from __future__ import annotations

from workbench.core.analysis.limit.limit import Limit
from workbench.viz.style import format

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")
# A part below this share of the step is not worth a word of the sentence.
_WORTH = 0.005


def limit_sentence(limit: Limit) -> tuple[str, str]:
    """The answer, whose first piece is strong: "A traced step takes 11.3 ms; two …"."""
    strong = f"A traced step takes {format.duration(limit.step_ns)}; "
    count = limit.cores
    cores = _NUMBERS[count] if count < len(_NUMBERS) else format.integer(count)
    needs = "this core alone needs" if count == 1 else f"{cores} of these cores need"
    parts = [
        (limit.below_peak_ns, "more are ops below peak"),
        (limit.beside_ns, "are work beside the ops"),
        (limit.idle_ns, "are idle cores"),
    ]
    worth = [
        f"{format.duration(ns)} {words}" for ns, words in parts if ns >= _WORTH * limit.step_ns
    ]
    rest = f": {', '.join(worth)}." if worth else "."
    return strong, f"{needs} at least {format.duration(limit.floor_ns)}{rest}"


def idle_sentence(limit: Limit) -> str:
    """Why cores idle; "" where they do not."""
    parts = [
        (limit.waits_ns, "the step waits for its input, or no step runs"),
        (limit.ready_ns, "an op is ready and not started, or a step is called or returns"),
        (limit.narrow_ns, "no other op is ready"),
    ]
    worth = [
        f"for {format.duration(ns)} {words}"
        for ns, words in sorted(parts, reverse=True)
        if ns >= _WORTH * limit.step_ns
    ]
    return f"Cores idle {'; '.join(worth)}." if worth else ""

"""A comparison as plain text."""

from __future__ import annotations

from workbench.viz.comparison.view import CompareView
from workbench.viz.style.format import UNKNOWN
from workbench.viz.style.plain_text import aligned, plain


def comparison_text(view: CompareView) -> str:
    """The answer in a sentence, the variants as a table, then what it rests on."""
    sentence = "".join(text for text, _ in view.sentence)
    heads = ["Variant", "steps/s", "step, median", "ratio", "95\u00a0%"]
    heads += ["predicted"] if view.predicts else []
    heads += ["tensors, peak"] if view.weighs else []
    rows = [
        [
            row.label,
            f"{row.rate} {row.half}".rstrip(),
            row.step_time,
            row.ratio,
            row.interval,
            *([row.predicted] if view.predicts else []),
            *([row.memory or UNKNOWN] if view.weighs else []),
            row.verdict,
            row.training,
        ]
        for row in view.rows
    ]
    left = {0, len(heads), len(heads) + 1}
    table = aligned([[*heads, "verdict", "training"], *rows], left=left)
    lines = [f"{view.program}: {sentence}", f"Next: {view.next_step}", "", *table]
    lines += ["", f"{view.caption}."]
    lines += [f"{limit.name}: {limit.rate}. {limit.detail}." for limit in view.limits]
    lines.append(view.receipt.sentence)
    lines += [
        f"{check.label}, {check.kind}: {check.result}, {check.detail}."
        for check in view.receipt.exceptions
    ]
    for curves in view.receipt.curves:
        heads = ["step", *(line.label for line in curves.lines)]
        lines += ["", f"{curves.title}:", *aligned([heads, *curves.rows], left=set())]
        lines += filter(None, [curves.auc])
    lines += list(view.notes)
    return "\n".join(plain(line) for line in lines)

"""The equivalence receipt: one line for all that train the same, a row for each exception."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.experiments.measurement.equivalence import Equivalence
from workbench.viz.comparison.chart import shown_label
from workbench.viz.comparison.loss_curves import LossCurves, loss_curves
from workbench.viz.style import format


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """One check of one variant, as finished words."""

    label: str
    kind: str
    result: str
    harm: bool
    detail: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Receipt:
    """Whether the variants train the same.

    Attributes:
      sentence: how many do, and what was compared.
      exceptions: checks that failed.
      checks: every check, where the sentence cannot have all that they say; else empty.
      curves: of variants that train another way, their losses beside the baseline's.
    """

    sentence: str
    exceptions: tuple[Check, ...]
    checks: tuple[Check, ...]
    curves: tuple[LossCurves, ...]


def receipt(equivalence: Sequence[Equivalence]) -> Receipt:
    """The receipt of the checks of a comparison."""
    labels = list(dict.fromkeys(check.label for check in equivalence))
    failed = {check.label for check in equivalence if not check.passed}
    passed = [check for check in equivalence if check.label not in failed]
    others = dict.fromkeys(check.label for check in equivalence if check.asked_otherwise)
    sentences = [_other_sentence(label) for label in others]
    if len(others) < len(labels) or not labels:
        sentences.insert(0, _sentence(labels, failed, passed))
    return Receipt(
        sentence=" ".join(sentences),
        exceptions=tuple(_check(check) for check in equivalence if not check.passed),
        checks=tuple(map(_check, equivalence)) if len(labels) > 1 else (),
        curves=tuple(curves for check in equivalence if (curves := loss_curves(check))),
    )


def _other_sentence(label: str) -> str:
    return (
        f"{shown_label(label)}: it trains another way, as was asked; its losses stand beside the "
        "baseline's."
    )


def _sentence(labels: Sequence[str], failed: set[str], passed: Sequence[Equivalence]) -> str:
    if not labels:
        return "Losses and batches were not compared."
    count, who = len(labels), shown_label(labels[0])
    if not passed:
        return f"{who} does not train the same." if count == 1 else "No variant trains the same."
    if count > 1:
        who = f"{count - len(failed)} of {count} variants" if failed else f"All {count} variants"
    # Batches alone do not say that losses are the same.
    losses = any("loss" in check.kind for check in passed)
    verb = ("train" if losses else "read") + ("s" if count - len(failed) == 1 else "")
    same = "the same" if losses else "the same batches"
    kinds = sorted({check.kind for check in passed}, key=lambda kind: ("loss" not in kind, kind))
    compared = [
        (f"{kind} " if losses else "")
        + _compared([check for check in passed if check.kind == kind], count)
        for kind in kinds
    ]
    return f"{who} {verb} {same}: {'; '.join(compared)}."


def _compared(checks: Sequence[Equivalence], variants: int) -> str:
    """What the checks of one kind compared."""
    steps = sorted({check.steps for check in checks})
    few, many = format.integer(steps[0]), format.integer(steps[-1])
    unit = "step" if many == "1" else "steps"
    words = f"over {few if few == many else f'{few} to {many}'} {unit}"
    if variants > 1 and len(checks) < variants:
        words += f" ({len(checks)} of them)"
    details = {check.detail for check in checks}
    return f"{words}, {details.pop()}" if len(details) == 1 else words


def _check(check: Equivalence) -> Check:
    unit = "step" if check.steps == 1 else "steps"
    steps = f"{format.integer(check.steps)} {unit} compared"
    if check.asked_otherwise:
        return Check(
            label=shown_label(check.label),
            kind="Losses",
            result=f"{check.asked_otherwise}, {steps}",
            harm=False,
            detail=check.detail,
        )
    return Check(
        label=shown_label(check.label),
        kind=check.kind[:1].upper() + check.kind[1:],
        result=f"{'yes' if check.passed else 'no'}, {steps}",
        harm=not check.passed,
        detail=check.detail,
    )

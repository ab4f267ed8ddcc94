"""Verification: what a comparison of a plan with the graph's own nodes says of each fused part."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from workbench.errors import PlanError
from workbench.number_words import counted

Verdict = Literal["same bits", "within rounding", "differs", "not verified"]
SAME: Final = "same bits"
ROUNDED: Final = "within rounding"
DIFFERS: Final = "differs"
NOT_VERIFIED: Final = "not verified"
# From here on it is the inputs' rounding that moves a result so far.
_MAGNIFIED = 1e-3


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifiedPart:
    """What a comparison says of one fused part.

    Attributes:
      kind: of the part, such as "lookup".
      name: what users call it.
      verdict: of all of its tensors and variables, the worst one.
      difference: the largest difference of two numbers.
      relative: that difference, as a share of the largest number that TensorFlow has there.
      where: the tensor or variable that has the largest difference; "" where none has any.
      reason: what differs beside numbers, or why the part is not verified, a clause; "" else.
    """

    kind: str
    name: str
    verdict: Verdict
    difference: float = 0.0
    relative: float = 0.0
    where: str = ""
    reason: str = ""

    def describe(self) -> str:
        """The verdict in words, one line."""
        text = f"{self.kind} {self.name!r}: {self.verdict}"
        if self.verdict == DIFFERS and self.difference and not self.reason:
            text += f", {self.where!r} by {self.difference:.3g}, {self.relative:.3g} of its values"
        elif self.verdict == DIFFERS and self.difference:
            text += f", {self.where!r}"
        return f"{text}: {self.reason}" if self.reason else text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verification:
    """What a comparison of a plan with the graph's own nodes says; true if nothing differs.

    Attributes:
      parts: of each fused part, in the plan's order.
    """

    parts: tuple[VerifiedPart, ...]

    @property
    def right(self) -> bool:
        """Whether nothing differs; what is not verified does not count."""
        return not any(part.verdict == DIFFERS for part in self.parts)

    def __bool__(self) -> bool:
        return self.right

    def of(self, verdict: Verdict) -> tuple[VerifiedPart, ...]:
        """The parts that have a verdict."""
        return tuple(part for part in self.parts if part.verdict == verdict)

    def describe(self) -> str:
        """The verdicts in words: a line a kind, and one for each part that is not proven right."""
        kinds = dict.fromkeys(part.kind for part in self.parts)
        lines = [self._line(kind) for kind in kinds] or ["nothing is fused, nothing to verify"]
        others = (*self.of(DIFFERS), *self.of(NOT_VERIFIED))
        return "\n".join([*lines, *(part.describe() for part in others)])

    def require(self) -> Verification:
        """Requires that nothing differs.

        Returns:
          Itself.

        Raises:
          PlanError: something differs; the message has the first part that does.
        """
        for part in self.of(DIFFERS):
            raise PlanError(
                f"the plan does not do what the graph does: {part.describe()}; leave the graph as "
                "it is, and report this"
            )
        return self

    def _line(self, kind: str) -> str:
        parts = [part for part in self.parts if part.kind == kind]
        verdicts = (SAME, ROUNDED, DIFFERS, NOT_VERIFIED)
        counts = [(sum(part.verdict == each for part in parts), each) for each in verdicts]
        found = [f"{count} {verdict}" for count, verdict in counts if count]
        largest = max((part.relative for part in parts if part.verdict == ROUNDED), default=0.0)
        by = f", by {largest:.1g} of the values at most" if largest else ""
        if largest > _MAGNIFIED:
            by += "; so far other rounding of the inputs moves TensorFlow's own results, too"
        return f"{counted(len(parts), kind)}: {', '.join(found)}{by}"

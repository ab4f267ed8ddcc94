"""Tolerance: which workers may fail while the others go on, and how long their answers may take."""

from __future__ import annotations

from collections.abc import Collection

_USUAL_LIMIT_S = 300.0
_LEAST_LIMIT_S, _TIMES_SLOWEST = 30.0, 5.0


class Tolerance:
    """What the workers of one comparison may do, by their labels."""

    def __init__(
        self,
        *,
        may_fail: Collection[str] = (),
        may_hang: Collection[str] = (),
        limit_s: float | None = None,
        budget_s: float = 0.0,
    ) -> None:
        """Nothing is tolerated by default.

        Args:
          may_fail: labels of workers whose failure is noted. That of another one is raised.
          may_hang: of these, labels of workers that run a choice of an author's, which may hang.
          limit_s: seconds that an answer of theirs may take. None takes five times what the
            slowest answer of another worker took, at least 30 seconds, and at least the budget.
          budget_s: of the comparison.
        """
        self._may_fail, self._may_hang = frozenset(may_fail), frozenset(may_hang)
        self._limit_s = limit_s
        self._least_s = max(_LEAST_LIMIT_S, budget_s)
        self._slowest_s = 0.0

    def may_fail(self, label: str) -> bool:
        """Whether a worker's failure is noted, and not raised."""
        return label in self._may_fail

    def limit_s(self, label: str) -> float:
        """Seconds that a worker's answer may take."""
        if label not in self._may_hang:
            return _USUAL_LIMIT_S
        if self._limit_s is not None:
            return self._limit_s
        return max(self._least_s, _TIMES_SLOWEST * self._slowest_s)

    def started(self) -> None:
        """Forgets how long TensorFlow's import took, which says nothing of what comes next."""
        self._slowest_s = 0.0

    def answered(self, label: str, seconds: float) -> None:
        """Notes how long an answer took."""
        if label not in self._may_hang:
            self._slowest_s = max(self._slowest_s, seconds)

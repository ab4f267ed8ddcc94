"""Events of a file that are left out because something about them is wrong."""

from __future__ import annotations

import dataclasses

from workbench.errors import TraceError


@dataclasses.dataclass(eq=False)
class Faults:
    """How many events have a fault, and what the first one lacks.

    One odd event among many is no reason to refuse a file; a file of odd events is.
    """

    count: int = 0
    first: str = ""

    def add(self, fault: str) -> None:
        """Notes an event that is left out."""
        self.count += 1
        self.first = self.first or fault

    def raise_first(self) -> None:
        """Refuses a file in which nothing else was found.

        Raises:
          TraceError: names the first fault; without one nothing is raised.
        """
        if self.count:
            raise TraceError(self.first)

    def left_out(self) -> dict[str, int]:
        """For `TraceMeta.left_out`."""
        if not self.count:
            return {}
        return {f"events with a fault, the first of them: {self.first}": self.count}

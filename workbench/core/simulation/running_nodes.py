"""Running nodes: which of them ends next, when some have fewer cores beside others than alone."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(slots=True)
class Running:
    """A node that runs.

    Attributes:
      left_ns: how long it still takes with the cores that it can use.
      node, thread: numbers.
      ops: of it that run side by side; 0 for an input, which takes no core.
      splits: whether it splits its work among cores.
    """

    left_ns: float
    node: int
    thread: int
    ops: float
    splits: bool = False


class RunningNodes:
    """The nodes that run at one moment.

    Attributes:
      ops: how many ops run.
      nodes: what runs, first what began first.
    """

    def __init__(self, cores: float, split_cores: float) -> None:
        """Nothing runs yet.

        Args:
          cores: that all share.
          split_cores: that a node which splits its work can use.
        """
        self.ops = 0.0
        self.nodes: list[Running] = []
        self._cores = cores
        self._split_cores = split_cores
        self._splitting = 0.0

    def add(self, begun: Running) -> None:
        """A node begins."""
        self.nodes.append(begun)
        self._count(begun, 1.0)

    @property
    def busy(self) -> float:
        """Cores in use, as many as there are at most or one for each op."""
        return self.ops + self._splitting * (self._cores_of_each - 1.0)

    @property
    def _cores_of_each(self) -> float:
        """Cores of each op that splits its work: what the others leave."""
        if not self._splitting:
            return 1.0
        left = (self._cores - (self.ops - self._splitting)) / self._splitting
        return min(max(1.0, left), self._split_cores)

    def end_next(self) -> tuple[float, Running]:
        """Goes on until a node ends: how long that takes, and the node."""
        pace = self._cores_of_each / self._split_cores
        first = min(self.nodes, key=lambda each: each.left_ns / (pace if each.splits else 1.0))
        lasts = first.left_ns / (pace if first.splits else 1.0)
        self.nodes.remove(first)
        for each in self.nodes:
            each.left_ns = max(0.0, each.left_ns - lasts * (pace if each.splits else 1.0))
        self._count(first, -1.0)
        return lasts, first

    def _count(self, each: Running, sign: float) -> None:
        self.ops += sign * each.ops
        if each.splits:
            self._splitting += sign * each.ops

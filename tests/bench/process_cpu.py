"""CPU time that processes, and all others of the machine, use; as Linux counts it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_TICKS_S = os.sysconf("SC_CLK_TCK")
OTHERS = "others"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
    """Seconds of a stretch of time, and of CPU that processes used in it, by name."""

    wall_s: float
    used_s: dict[str, float]


class CpuUse:
    """What processes use in several stretches of time.

    Args:
      processes: their numbers, by name; those of one name are counted together.
    """

    def __init__(self, processes: Mapping[str, Sequence[int]]) -> None:
        self._processes = dict(processes)
        self._blocks: list[Block] = []

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Counts what is used inside."""
        begun, before = time.perf_counter(), self._now()
        yield
        wall_s, after = time.perf_counter() - begun, self._now()
        used = {name: after[name] - before[name] for name in after}
        self._blocks.append(Block(wall_s=wall_s, used_s=used))

    @property
    def last_s(self) -> float:
        """CPU seconds of the processes, of the last stretch."""
        return sum(self._blocks[-1].used_s[name] for name in self._processes)

    @property
    def cores(self) -> dict[str, float]:
        """How many cores the processes of a name, and all others of the machine, used at a time."""
        wall_s = sum(block.wall_s for block in self._blocks)
        names = [*self._processes, OTHERS]
        return {name: sum(block.used_s[name] for block in self._blocks) / wall_s for name in names}

    def _now(self) -> dict[str, float]:
        found = {name: sum(map(_process_s, some)) for name, some in self._processes.items()}
        return {**found, OTHERS: _machine_s() - sum(found.values())}


def _process_s(number: int) -> float:
    # The name before it stands in parentheses, and may hold anything.
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_S


def _machine_s() -> float:
    first = Path("/proc/stat").read_text().splitlines()[0]
    user, nice, system, _idle, _waiting, interrupts, soft, stolen = map(int, first.split()[1:9])
    return (user + nice + system + interrupts + soft + stolen) / _TICKS_S

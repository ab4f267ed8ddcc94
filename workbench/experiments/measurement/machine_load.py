"""What else a machine is busy with when a measurement begins."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import OutputError
from workbench.files.atomic_file import make_directory, replacing
from workbench.files.user_cache import user_cache

# Below this share of the cores a machine is quiet.
QUIET_SHARE = 0.15
_SAMPLE_S = 0.25
_STAT = Path("/proc/stat")
_numbers = itertools.count()


@dataclasses.dataclass(frozen=True, kw_only=True)
class MachineLoad:
    """How busy a machine is.

    Attributes:
      busy_cores: cores that are in use, a moment's mean; None where the system does not say.
      cores: that this process may run on.
      others: programs that other runs of Workbench measure now.
    """

    busy_cores: float | None
    cores: int
    others: tuple[str, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing else is known to run."""
        busy = self.busy_cores is not None and self.busy_cores > QUIET_SHARE * self.cores
        return not busy and not self.others

    @property
    def words(self) -> str:
        """What runs beside a measurement that begins, a sentence; "" on a quiet machine."""
        causes = self._causes()
        return f"The machine is busy: {causes}; intervals will be wide." if causes else ""

    @property
    def past_words(self) -> str:
        """The same of a measurement that is over."""
        causes = self._causes()
        return f"The machine was busy when this began: {causes}." if causes else ""

    def _causes(self) -> str:
        causes = []
        if self.busy_cores is not None and self.busy_cores > QUIET_SHARE * self.cores:
            cores = f"{self.cores} core" + "s" * (self.cores != 1)
            causes.append(f"{self.busy_cores:.1f} of {cores} in use by others")
        causes += [f"another run of Workbench, of {name!r}" for name in self.others[:1]]
        return ", ".join(causes)


def machine_load(sample_s: float = _SAMPLE_S) -> MachineLoad:
    """How busy this machine is now.

    Args:
      sample_s: seconds over which cores are looked at.
    """
    cores = os.sched_getaffinity(0)
    before = _busy_idle(cores)
    time.sleep(sample_s)
    after = _busy_idle(cores)
    share = None
    if before is not None and after is not None:
        busy, idle = (b - a for a, b in zip(before, after, strict=True))
        share = busy / (busy + idle) if busy + idle > 0 else 0.0
    return MachineLoad(
        busy_cores=None if share is None else share * len(cores),
        cores=len(cores),
        others=tuple(name for _, name in _running()),
    )


@contextlib.contextmanager
def measuring(name: str) -> Iterator[None]:
    """Tells other runs of Workbench, here and in other processes, that this one measures.

    Args:
      name: of the program.
    """
    path = _folder() / f"{os.getpid()}-{_began(os.getpid())}-{next(_numbers)}"
    # Where nothing can be written, others are not told.
    with contextlib.suppress(OutputError, OSError):
        make_directory(path.parent)
        with replacing(path) as part:
            part.write_text(name, "utf-8")
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def _running() -> Iterator[tuple[Path, str]]:
    """Measurements that go on; what a process has left that is gone is removed."""
    with contextlib.suppress(OSError):
        for path in sorted(_folder().iterdir()):
            with contextlib.suppress(OSError, ValueError):
                pid, began, _ = path.name.split("-")
                if _began(int(pid)) == began:
                    yield path, path.read_text("utf-8")
                else:
                    path.unlink()


def _folder() -> Path:
    """Of this machine: a home that others mount has processes of theirs, which look gone here."""
    return user_cache() / "measuring" / platform.node()


def _began(pid: int) -> str:
    """When a process began, in ticks of the kernel; "" where there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _busy_idle(cores: set[int]) -> tuple[int, int] | None:
    """Ticks that these cores were busy and idle; None where the system does not say."""
    busy = idle = 0
    try:
        for line in _STAT.read_text().splitlines():
            name, *fields = line.split()
            if name[3:].isdigit() and name.startswith("cpu") and int(name[3:]) in cores:
                user, nice, system, rest, waits, *others = map(int, fields[:8])
                busy += user + nice + system + sum(others)
                idle += rest + waits
    except (OSError, ValueError):
        return None
    return (busy, idle) if busy + idle else None

"""PhaseTimes: what the phases of a program took on this machine, kept for the next estimate."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import statistics
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import DataError, OutputError
from workbench.files.atomic_file import make_directory, replacing
from workbench.files.saved_values import json_of, read_file, value_of
from workbench.files.user_cache import user_cache

_FORMAT = 1
# The newest times of a phase count, and settings of a program of which times are kept.
_KEPT, _MOST_SETTINGS = 5, 40


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Document:
    """What a file holds: seconds by setting and phase, the newest last."""

    format: int
    seconds: dict[str, dict[str, tuple[float, ...]]]


class PhaseTimes:
    """Seconds of the phases of one program; what cannot be read or written is as if unknown."""

    def __init__(self, path: Path) -> None:
        """Reads what a file holds.

        Args:
          path: of the file, which may not exist yet.
        """
        self._path = path
        self._seconds: dict[str, dict[str, tuple[float, ...]]] = {}
        with contextlib.suppress(DataError):
            document = value_of(_Document, json_of(read_file(path)), "times of phases")
            if document.format == _FORMAT:
                self._seconds = document.seconds

    def seconds(self, name: str, setting: str) -> float | None:
        """What a phase takes, as a median.

        Args:
          name: of the phase.
          setting: what ran; where that is not known, what other settings took.
        """
        taken = self._seconds.get(setting, {}).get(name)
        if taken:
            return statistics.median(taken)
        others = [each[name] for each in self._seconds.values() if each.get(name)]
        return statistics.median(statistics.median(each) for each in others) if others else None

    def learn(self, setting: str, durations: Mapping[str, float]) -> None:
        """Keeps what the phases of a run took that came to its end.

        Args:
          setting: what ran.
          durations: seconds by phase.
        """
        before = self._seconds.pop(setting, {})
        taken = {
            name: (*before.get(name, ()), round(seconds, 3))[-_KEPT:]
            for name, seconds in durations.items()
        }
        self._seconds[setting] = {**before, **taken}
        newest = list(self._seconds.items())[-_MOST_SETTINGS:]
        content = json.dumps({"format": _FORMAT, "seconds": dict(newest)})
        with contextlib.suppress(OutputError):
            make_directory(self._path.parent)
            with replacing(self._path) as part:
                part.write_text(content, "utf-8")


def phase_times(program: str, settings: Mapping[str, object], machine: str) -> PhaseTimes:
    """What is kept of a program on a machine.

    Args:
      program: its name.
      settings: its own, such as the size of its batches.
      machine: what tells machines and versions apart.
    """
    known = json.dumps([program, sorted(map(repr, settings.items())), machine])
    name = hashlib.sha256(known.encode()).hexdigest()[:24]
    return PhaseTimes(phase_times_home() / f"{name}.json")


def phase_times_home() -> Path:
    """The folder of the files."""
    return user_cache() / "phase-times"

"""The peaks of this machine: measured once, then kept in the user's cache directory."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from workbench.core.analysis.limit.peaks import Peaks
from workbench.errors import OutputError, RunError
from workbench.experiments.comparison.environment import machine
from workbench.experiments.measurement.machine_load import machine_load, measuring
from workbench.experiments.measurement.progress import Progress
from workbench.files.atomic_file import make_directory, replacing
from workbench.files.user_cache import user_cache

# By the file that would keep them.
_beside_other_work: dict[Path, Peaks] = {}
_one_at_a_time = threading.Lock()
_FORMAT = 2
_TIMEOUT_S = 120
# Each thread of the probe multiplies by itself.
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


def machine_peaks(*, again: bool = False, progress: bool | Callable[[str], None] = True) -> Peaks:
    """What a core of this machine does at most.

    Measured the first time, in about five seconds, and then read from a file in the user's cache
    directory. What was measured while the machine did other work may be too low. Only this process
    keeps it, so that all its limits are of the same peaks.

    Args:
      again: measures once more.
      progress: as of `compare`.

    Raises:
      RunError: the measurement failed.
    """
    with _one_at_a_time:
        known = None if again else known_peaks()
        return known or _measured(Progress(progress))


def known_peaks() -> Peaks | None:
    """What was measured on this machine before; None where nothing was, or its file is damaged."""
    path = _path()
    if path in _beside_other_work:
        return _beside_other_work[path]
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_text("utf-8"))
        if known["format"] == _FORMAT:
            return Peaks.from_json(known)
    return None


def _measured(shown: Progress) -> Peaks:
    path, load = _path(), machine_load()
    kept = "once" if load.is_quiet else "beside other work, kept by this process only"
    shown.phase(f"Measuring what the machine can do, {kept} (about 5 s)")
    try:
        with measuring("the peaks of the machine"):
            peaks = _probed()
    finally:
        shown.end()
    if not load.is_quiet:
        _beside_other_work[path] = peaks
        return peaks
    _beside_other_work.pop(path, None)
    # Where nothing can be kept, the next call measures again.
    with contextlib.suppress(OutputError):
        make_directory(path.parent)
        with replacing(path) as part:
            part.write_text(json.dumps({"format": _FORMAT, **peaks.to_json()}), "utf-8")
    return peaks


def _probed() -> Peaks:
    # These name the kernels of some older processor, or of a smaller cache.
    held_back = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
    kept = {name: value for name, value in os.environ.items() if name not in held_back}
    environment = {**kept, **_ONE_THREAD}
    # The child finds this package wherever this process found it.
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "workbench.experiments.comparison.peak_probe"]
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
        return Peaks.from_json(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        raise RunError(f"measuring the machine's peaks took more than {_TIMEOUT_S} s") from None
    except subprocess.CalledProcessError as error:
        lines = error.stderr.strip().splitlines()
        reason = lines[-1] if lines else f"exit code {error.returncode}"
        raise RunError(f"measuring the machine's peaks failed: {reason}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"measuring the machine's peaks failed: {error}") from error


def _path() -> Path:
    """One file for each kind of machine."""
    facts = machine()
    known = "-".join([str(facts.get("cpu", "")), str(facts.get("cores", "")), platform.node()])
    name = "".join(c if c.isalnum() or c in "-." else "_" for c in known)
    return user_cache() / f"peaks-{name or platform.machine()}.json"

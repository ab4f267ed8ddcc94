"""What of a folder the tools can open: traces, saved results and sessions."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import one_line
from workbench.experiments.comparison import COMPARISON_FILE
from workbench.experiments.session.saved import SESSION_FILE

_PATTERNS = {
    "*.parquet": "trace",
    "*.json": "trace",
    "*.json.gz": "trace",
    COMPARISON_FILE: "results",
    SESSION_FILE: "session",
}
# Of each kind, so that a folder of data cannot keep an agent waiting.
_MOST = 200
# A Chrome trace names its events, or has one, within as many bytes.
_HEAD_BYTES = 4096
_MARKS = (b'"traceEvents"', b'"ph"')


def listed(home: Path) -> Iterator[dict[str, str]]:
    """The files below a folder, with what each is; of a directory's index the directory."""
    for pattern, what in _PATTERNS.items():
        for file in sorted(home.rglob(pattern))[:_MOST]:
            if what != "trace":
                file = file.parent
            elif file.suffix != ".parquet" and not _is_chrome_trace(file):
                continue
            yield {"path": one_line(str(file.relative_to(home))), "what": what}


def _is_chrome_trace(path: Path) -> bool:
    """Whether a file of JSON, which may be compressed, begins as traces do."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error):
        return False
    return any(mark in head for mark in _MARKS)

"""quiet_start: TensorFlow without the lines that it prints while it is imported."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator

_STARTS = re.compile(r"WARNING: All log messages before absl|[IW]\d{4} [\d:. ]+\S+\.cc:\d+\]")


@contextlib.contextmanager
def quiet_start() -> Iterator[None]:
    """Keeps back what TensorFlow logs when it is imported, which a notebook shows in red.

    ```python
    with wb.quiet_start():
        import tensorflow as tf
    ```

    It logs that it finds no CUDA before it reads `TF_CPP_MIN_LOG_LEVEL`. Errors, and whatever else
    reaches this process's stderr meanwhile, are shown at the end.
    """
    if sys.__stderr__ is None:
        # Closed when Python began: whatever has its number is another file.
        yield
        return
    _flush()
    with tempfile.TemporaryFile() as kept:
        stderr = os.dup(2)
        os.dup2(kept.fileno(), 2)
        try:
            yield
        finally:
            _flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            kept.seek(0)
            lines = kept.read().decode("utf-8", "replace").splitlines(keepends=True)
            if sys.stderr is not None:
                sys.stderr.write("".join(line for line in lines if not _STARTS.match(line)))


def _flush() -> None:
    # A process without a console has None.
    if sys.stderr is not None:
        sys.stderr.flush()

"""Runs of a stage's put that a test asks for, with what TensorFlow tells of them."""

from __future__ import annotations

import threading
from typing import Any

from workbench.core.staging import buffer


def put_beside(session: Any, run: Any, train: Any, options: Any, metadata: Any) -> None:
    """One more run of a stage's put, while steps make room for it."""
    put = buffer.prepared(
        session, feeds=[run.runner.owner], targets=[run.runner.puts[0]], options=options
    )
    thread = threading.Thread(
        target=lambda: put([run._token, 0], run_metadata=metadata), daemon=True
    )
    thread.start()
    while thread.is_alive():
        session.run(train)

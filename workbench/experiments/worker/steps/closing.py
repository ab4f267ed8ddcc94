"""Ends of sessions that are not waited for longer than they say something."""

from __future__ import annotations

import threading
from typing import Any

# TensorFlow frees an iterator of tf.data when the thread that tunes it next wakes up, which may be
# a minute later: a cancellation wakes it before the thread can see that it is cancelled.
_FREED_S = 1.0


def free_in_background(session: Any) -> None:
    """Has the `close` of a session return within a second.

    All that it waits for is that TensorFlow frees what the session holds. Hooks and threads of the
    session have ended by then.

    Args:
      session: a `tf.compat.v1.Session`, not yet closed.
    """
    close = session.close

    def close_soon() -> None:
        errors: list[BaseException] = []

        def run() -> None:
            try:
                close()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run, name="workbench-close", daemon=True)
        thread.start()
        thread.join(_FREED_S)
        if errors:
            raise errors[0]

    session.close = close_soon

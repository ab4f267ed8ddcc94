"""Child processes of tests."""

from __future__ import annotations

import signal


def hear_ctrl_c() -> None:
    """For `preexec_fn`: the child hears SIGINT though the tests run in a shell's background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

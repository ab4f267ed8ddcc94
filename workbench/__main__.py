"""The `workbench` command, and `python -m workbench`."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Runs the command line; Ctrl-C while it still loads ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from workbench.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())

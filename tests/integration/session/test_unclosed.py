"""A script may end without closing anything: it ends with its own exit code all the same.

`WORKBENCH_SOAK_EXITS` sets the number of scripts run (`make soak-exit`: 200).
"""

from __future__ import annotations

import os
import subprocess
import sys

from tests.builders import unclosed

RUNS = int(os.environ.get("WORKBENCH_SOAK_EXITS", len(unclosed.SCRIPTS)))


def test_scripts_that_close_nothing_end_with_their_own_exit_codes():
    command = [sys.executable, "-m", "tests.builders.unclosed", str(RUNS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + 30 * RUNS)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]

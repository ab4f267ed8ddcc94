"""A script may end without closing anything: it ends with its own exit code all the same.

`WORKBENCH_SOAK_EXITS` sets the number of scripts run (`make soak-exit`: 200).
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.builders import unclosed

RUNS = int(os.environ.get("WORKBENCH_SOAK_EXITS", len(unclosed.SCRIPTS)))
UNLIKE = [name for name in unclosed.SCRIPTS if name not in unclosed.ALIKE]


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [UNLIKE, pytest.param(list(unclosed.ALIKE), marks=pytest.mark.slow)], ids=len
)
def test_scripts_that_close_nothing_end_with_their_own_exit_codes(names):
    count = RUNS * len(names) // len(unclosed.SCRIPTS)
    command = [sys.executable, "-m", "tests.builders.unclosed", str(count), *names]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120 + 30 * count)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]

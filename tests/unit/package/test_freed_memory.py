"""Memory that a process frees: kept for its next allocation, or not, as its user says."""

from __future__ import annotations

import subprocess
import sys

import pytest

# 100 blocks of 100 KiB come and go in each step.
SCRIPT = """
import resource, sys
import numpy as np
import workbench as wb

kept = wb.keep_freed_memory() if "keep" in sys.argv else None

def step():
    blocks = [np.full(100 << 10, 1, np.uint8) for _ in range(100)]

step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    step()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def run(*arguments: str, **variables: str) -> tuple[str, int]:
    """What the call returned, and the page faults of 20 steps."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        env={"PATH": "", **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    kept, faults = done.stdout.split()
    return kept, int(faults)


def test_pages_are_touched_once():
    _, before = run()
    kept, after = run("keep")
    assert kept == "True"
    # 20 steps of 10 MB are 50,000 pages
    assert after < 1_000 < 25_000 < before


@pytest.mark.parametrize(
    ("name", "value"),
    [("MALLOC_ARENA_TEST", "8"), ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=7")],
)
def test_settings_of_the_users_own_stand(name, value):
    kept, _ = run("keep", **{name: value})
    assert kept == "False"

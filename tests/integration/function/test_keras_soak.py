"""Models made, staged, trained and dropped in one process leave what plain Keras leaves.

`WORKBENCH_SOAK_KERAS` sets the number of models (`make soak-keras`: 100).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

ROUNDS = int(os.environ.get("WORKBENCH_SOAK_KERAS", "20"))
# Of the later half: before, threads' heaps and TensorFlow's caches fill up.
ALLOWED_BYTES = 6 << 20
ALLOWED_BYTES_PER_ROUND = 100 << 10


def rounds(kind: str, count: int = ROUNDS) -> dict:
    command = [sys.executable, "-m", "tests.builders.keras_rounds", kind, str(count)]
    # One heap: which thread's heap a freed block went to says nothing here.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert (found["alive"], found["threads"]) == (0, 1)
    assert len(set(found["graphs"])) == 1
    return found


@pytest.mark.slow
def test_staged_models_leave_no_graph_and_no_thread():
    rounds("staged", count=3)


@pytest.mark.slow
def test_staged_models_leave_the_memory_that_plain_ones_leave():
    with ThreadPoolExecutor() as both:
        plain, staged = both.map(rounds, ["plain", "staged"])
    grown = {k: f["resident"][-1] - f["resident"][5] for k, f in (("p", plain), ("s", staged))}
    print(f"{ROUNDS} rounds, bytes grown in the later half:", grown)
    more = grown["s"] - grown["p"]
    assert more <= ALLOWED_BYTES + ALLOWED_BYTES_PER_ROUND * ROUNDS // 2, (plain, staged)

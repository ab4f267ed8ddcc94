"""Processes that are not as usual: other Keras, no stderr, no folder, spawned ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
COMPARED = "['off', 'smart stage']"
REMOVED = "The working folder of this process was removed, so a child process has none to run in."


def run(situation: str, *, stderr: bool = True) -> tuple[str, str]:
    """Last line of what a situation prints, and its stderr."""
    command = [sys.executable, "-m", "tests.builders.environments", situation]
    closed = [] if stderr else ["bash", "-c", 'exec "$@" 2>&-', "bash"]
    done = subprocess.run(
        [*closed, *command],
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1], done.stderr


@pytest.mark.slow
def test_without_tf_keras_what_needs_no_keras_is_staged_and_keras_3_too():
    assert run("legacy_keras")[0] == "(16, True, True)"


def test_a_comparison_in_a_removed_folder_says_so():
    assert run("removed_folder")[0] == f"{REMOVED} Call os.chdir with a folder that exists."


@pytest.mark.slow
def test_a_process_without_stderr_compares():
    assert run("no_stderr", stderr=False)[0] == COMPARED


@pytest.mark.slow
def test_a_process_that_was_spawned_compares_what_its_script_defines():
    assert run("spawned")[0] == COMPARED

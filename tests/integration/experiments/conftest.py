"""Comparisons here have spent their budget when all has started: then their blocks are short."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from workbench.experiments.comparison.running import interleaved_run
from workbench.experiments.measurement.blocks import run_blocks
from workbench.experiments.worker.warm_python import warm_python

USERS_S, OURS_S = 1.0, 0.2


def run_short_blocks(*given: Any, budget_s: float, **options: Any) -> Any:
    """What users have for a second where no time is left is a fifth of it."""
    budget_s = OURS_S if budget_s <= USERS_S else budget_s
    return run_blocks(*given, budget_s=budget_s, **options)


@pytest.fixture(scope="module", autouse=True)
def short_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interleaved_run, "run_blocks", run_short_blocks)
        yield


@pytest.fixture
def no_process_is_left() -> Iterator[None]:
    """What a test starts has ended when it ends."""
    with warm_python():  # it is kept
        before = {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    after = {child.pid for child in psutil.Process().children(recursive=True)}
    assert after <= before

"""All tests: no test fails because the machine was busy, and generated values are few at a time.

Each run generates others; `WORKBENCH_FUZZ_EXAMPLES` sets how many (`make test-slow`: 400). Those
that cost much are fewer: tests/builders/examples.py.
"""

import gc
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from workbench import _native
from workbench.experiments.measurement import phase_times

EXAMPLES = int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "25"))
settings.register_profile("workbench", deadline=None, max_examples=EXAMPLES)
settings.load_profile("workbench")


@pytest.fixture(autouse=True, scope="session")
def learned_times(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What phases take is learned for these tests alone, not for the user."""
    home = tmp_path_factory.mktemp("phase-times")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phase_times, "phase_times_home", lambda: home)
        yield


@pytest.fixture
def without_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A native library that was built for a TensorFlow for which there are no executors."""
    stamp = {"format_version": 3, "tensorflow": "2.18.1", "cxx11_abi": 1, "executors": 0}
    (tmp_path / "_workbench.json").write_text(
        json.dumps({**stamp, "dense": 1, "workbench": "0.1.0"})
    )
    monkeypatch.setattr(_native, "library_path", lambda: tmp_path / "_workbench.so")


def pytest_collection_finish() -> None:
    """Spares the garbage collector what is there before the first test."""
    gc.collect()
    gc.freeze()

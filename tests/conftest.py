"""All tests: no test fails because the machine was busy, and generated values are few at a time.

Each run generates others; `WORKBENCH_FUZZ_EXAMPLES` sets how many (`make test-slow`: 400).
"""

import gc
import os

from hypothesis import settings

EXAMPLES = int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "25"))
settings.register_profile("workbench", deadline=None, max_examples=EXAMPLES)
settings.load_profile("workbench")


def pytest_collection_finish() -> None:
    """Spares the garbage collector what is there before the first test."""
    gc.collect()
    gc.freeze()

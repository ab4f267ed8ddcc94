"""How many examples a costly test draws: few, or many with `WORKBENCH_FUZZ_EXAMPLES`."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings


def few(usual: int, many: int = 120, **more: Any) -> settings:
    """Of a test that makes sessions, figures or searches for each example."""
    asked = "WORKBENCH_FUZZ_EXAMPLES" in os.environ
    return settings(max_examples=many if asked else usual, deadline=None, **more)

"""No worker of these tests imports TensorFlow again."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def workers(warm_workers: None) -> None:
    """For all of them."""

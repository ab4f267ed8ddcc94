"""Comparisons here have spent their budget when all has started: then their parts are short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from workbench.experiments.comparison.running import interleaved_run


@pytest.fixture(scope="module", autouse=True)
def short_parts() -> Iterator[None]:
    """Blocks of a fifth of a second in all, where users have them for a second at least."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(interleaved_run, "_LEAST_S", 0.2)
        yield

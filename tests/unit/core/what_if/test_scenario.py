"""Scenarios: what of a setting is the program's, the session's and the data's."""

from __future__ import annotations

import pytest

from workbench.core.optimizations import Optimizations
from workbench.core.what_if.scenario import Scenario, scenario_of
from workbench.errors import OptionError


def test_threads_and_batch_leave_the_toggles():
    wish = Optimizations(
        fused_embeddings="v1", inter_op_threads=3, intra_op_threads=2, batch_size=1024
    )
    assert scenario_of(wish, 512) == Scenario(
        optimizations=Optimizations(fused_embeddings="v1"), inter_op_threads=3, batch_ratio=2.0
    )


def test_a_batch_needs_that_of_the_trace():
    assert scenario_of(Optimizations()) == Scenario()
    with pytest.raises(OptionError, match="batches of 64 rows: how many those of the trace have"):
        scenario_of(Optimizations(batch_size=64))

"""Each model gives labels and scores: read as the loss is, and also where its input runs ahead."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.builders.grids import rest_slow
from workbench.core.optimizations import Optimizations
from workbench.core.options import SmartStageOptions
from workbench.experiments.measurement.auc import auc_of
from workbench.experiments.worker.steps.graph_session import ProgramSession
from workbench.experiments.worker.wire.messages import SCORES
from workbench.models import MODELS

BATCH, STEPS = 64, 6
SMART = Optimizations(smart_stage=SmartStageOptions(num_threads=1))


@pytest.mark.parametrize("name", rest_slow(list(MODELS), "dlrm"))
def test_scores_are_read_with_the_losses(name, tmp_path):
    model = MODELS[name]()
    data = model.generated(tmp_path, rows=BATCH * STEPS, seed=1)
    options = dataclasses.replace(model.options(data=data, seed=1), batch_size=BATCH)
    ran = []
    for setting in (Optimizations(), SMART):
        session = ProgramSession(model.program(options), "build", setting, scored=True)
        assert session.opened.has_scores
        ran.append(session.run(STEPS, SCORES))
        session.close()
    plain, smart = ran
    assert plain.values.tobytes() == smart.values.tobytes()
    assert [len(labels) for labels, _ in plain.scored] == [BATCH] * STEPS
    np.testing.assert_array_equal(plain.scored, smart.scored)
    assert 0 < auc_of(plain.scored).value < 1

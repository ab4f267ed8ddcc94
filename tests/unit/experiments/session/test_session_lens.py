"""The embedding lens of a session has the ids that were fetched with the program's graphs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import workbench as wb
from tests.builders.embedding_lenses import stock_trace
from tests.builders.sessions import OFF, PROGRAM, learned, measured, with_trace
from workbench.core.analysis.embedding_lens.id_statistics import id_statistics
from workbench.core.analysis.embedding_lens.tables import EmbeddingTable
from workbench.display import text_of
from workbench.errors import DataError
from workbench.experiments.session.session import Session
from workbench.experiments.worker.wire.messages import SampledIds

TABLE = EmbeddingTable(
    name="table",
    rows=100,
    dim=4,
    dtype="float32",
    slots=("table/Adagrad",),
    lookups=("C1",),
    ids=("ids:0",),
)
SAMPLED = SampledIds(
    tables=(TABLE,), ids={"table": id_statistics([np.array([1, 1, 2]), np.array([1, 3, 4])])}
)


def session(sampled: SampledIds | None = SAMPLED) -> Session:
    made = Session(PROGRAM)
    made.add(with_trace(measured([OFF]), stock_trace(title="tiny")), [OFF])
    made._foreseen.known = dataclasses.replace(learned(), sampled=sampled)
    return made


def words(made: Session) -> str:
    trace = made.runs[0].measured.trace
    assert trace is not None
    return text_of(made.embedding_lens(trace)).replace("\u00a0", " ")


def test_ids_and_sizes_are_those_of_the_program():
    said = words(session())
    assert "100 × 4" in said and "1.6 kB" in said
    assert "Ids of 2 batches" in said and "not sampled" not in said


def test_they_are_saved_with_the_session(tmp_path):
    session().save(tmp_path)
    assert words(wb.load_session(tmp_path)) == words(session())


def test_ids_in_a_file_are_checked(tmp_path):
    session().save(tmp_path)
    path = tmp_path / "session.json"
    path.write_text(path.read_text().replace('"rows": 100', '"rows": "many"'))
    with pytest.raises(DataError, match="rows is 'many'; expected an integer"):
        wb.load_session(tmp_path)


def test_why_there_are_none_is_said_and_no_argument_is_asked_for():
    said = words(session(None))
    assert "Ids and sizes were not sampled: the session was saved before they were kept." in said
    assert "program=" not in said

"""Learned costs from a stand-in for the native side: read, shown, saved, given again."""

from __future__ import annotations

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tests.builders.native_calls import LEARNT, FakeCalls
from workbench import _native
from workbench.core.executor.learned_costs import (
    learned_costs,
    load_learned_costs,
    preload_costs,
    relearn_costs,
)
from workbench.errors import DataError, OptionError
from workbench.viz.executor.learned_costs import learned_costs_tables
from workbench.viz.outlets import html_of, text_of

HEADER = LEARNT.splitlines(keepends=True)[0]


@pytest.fixture
def native(monkeypatch):
    fake = FakeCalls()
    monkeypatch.setattr(_native, "calls", lambda: fake)
    return fake


def test_what_was_learned_is_a_frame(native):
    found = learned_costs()
    assert found.nodes.columns.tolist() == HEADER.split()
    assert found.nodes["node"].tolist() == ["a", "b", 'NA/"c', "d", "init"]
    assert found.nodes["learned"].tolist() == [True] * 4 + [False]
    assert found.nodes["average_ns"].tolist() == [10, 1000, 200, 110, 7]
    assert found.nodes["batch"].tolist() == [0, 0, 1, -1, -1]
    assert found.nodes["slack_ns"].dtype == "int64"
    assert repr(found) == "LearnedCosts(2 executors, 1 of them have learned, 5 nodes)"


def test_the_native_text_is_freed(native):
    learned_costs()
    assert native.freed == native.lent
    assert len(native.lent) == 1


@pytest.mark.parametrize("text", ["", HEADER])
def test_without_an_executor_there_are_no_rows(native, text):
    native.learned = text
    found = learned_costs()
    assert len(found.nodes) == 0
    assert repr(found) == "LearnedCosts(0 executors, 0 of them have learned, 0 nodes)"
    assert text_of(found).startswith("No cost-model executor is alive in this process")
    assert "No cost-model executor" in html_of(found)


def test_fractions_of_a_nanosecond_are_rounded(native):
    native.learned = HEADER + "1\t1\t100\ta\tConst\t/cpu:0\t3\t10.6\t10.6\t0\t0\ttrying\n"
    assert learned_costs().nodes["average_ns"].tolist() == [11]


def test_each_executor_is_summed_up(native):
    frame = learned_costs().executors()
    assert frame.index.tolist() == [1, 2]
    assert frame.loc[1].to_dict() == {
        "learned": True,
        "order": "by cost",
        "steps": 100,
        "nodes": 4,
        "critical_path_ns": 1120,
        "work_ns": 1320,
    }


def test_a_column_that_is_missing_is_named(native):
    native.learned = "executor\tlearned\n1\t1\n"
    with pytest.raises(DataError, match="learned costs have no column 'steps'; expected executor,"):
        learned_costs()


def test_a_column_of_the_wrong_kind_is_named(native):
    native.learned = HEADER + "1\t1\tmany\ta\tConst\t/cpu:0\t3\t10\t10\t0\t0\t\n"
    with pytest.raises(DataError, match="column 'steps' of learned costs does not hold int64"):
        learned_costs()


def test_they_survive_saving(native, tmp_path):
    found = learned_costs()
    found.save(tmp_path / "costs.parquet")
    read = load_learned_costs(tmp_path / "costs.parquet")
    pd.testing.assert_frame_equal(read.nodes, found.nodes)
    assert [path.name for path in tmp_path.iterdir()] == ["costs.parquet"]
    assert read.average_ns() == found.average_ns()


def test_a_file_of_another_format_is_refused(native, tmp_path):
    path = tmp_path / "costs.parquet"
    learned_costs().save(path)
    table = pq.read_table(path)
    notes = {**table.schema.metadata, b"format_version": b"2"}
    pq.write_table(table.replace_schema_metadata(notes), path)
    with pytest.raises(DataError, match=r"Format 2; this Workbench reads 1\. Update it\."):
        load_learned_costs(path)


def test_what_is_no_file_of_costs_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"there is no file '.*no'; expected one that"):
        load_learned_costs(tmp_path / "no")
    (tmp_path / "text").write_text("node\n")
    with pytest.raises(DataError, match=r"'.*text' holds no learned costs: it is no Parquet file"):
        load_learned_costs(tmp_path / "text")
    pd.DataFrame({"node": ["a"]}).to_parquet(tmp_path / "frame")
    with pytest.raises(DataError, match=r"'.*frame' holds no learned costs; expected a file that"):
        load_learned_costs(tmp_path / "frame")


def test_a_failed_save_keeps_the_old_file(native, tmp_path, monkeypatch):
    path = tmp_path / "costs.parquet"
    path.write_bytes(b"old")

    def failing(*arguments, **options):
        raise OSError("disk full")

    monkeypatch.setattr(pq, "write_table", failing)
    with pytest.raises(OSError, match="disk full"):
        learned_costs().save(path)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_costs_are_given_by_node(native):
    preload_costs(learned_costs())
    assert native.given == ['a\t10\t10\nb\t1000\t1000\nNA/"c\t200\t200\nd\t110\t110\n']


def test_a_node_of_a_loop_counts_with_all_its_rounds(native):
    native.learned = HEADER + (
        "1\t1\t50\tonce\tNeg\t\t50\t70\t370\t0\t-1\n"
        "1\t1\t50\tround\tNeg\t\t500\t30\t300\t0\t-1\n"
        "1\t1\t50\tseldom\tNeg\t\t5\t20\t20\t0\t-1\n"
    )
    costs = learned_costs()
    assert costs.per_step_ns() == {"once": 70, "round": 300, "seldom": 20}
    assert costs.executors()["work_ns"].tolist() == [390]
    preload_costs(costs)
    assert native.given == ["once\t70\t70\nround\t30\t300\nseldom\t20\t20\n"]


def test_a_node_of_several_executors_has_the_average_of_all_its_runs(native):
    native.learned += (
        "3\t1\t100\ta\tConst\t/cpu:0\t300\t30\t30\t0\t0\n"
        "3\t1\t100\tskipped\tNeg\t/cpu:0\t0\t0\t0\t30\t-1\n"
        "4\t0\t7\ta\tConst\t/cpu:0\t7\t9999\t0\t0\t-1\n"
    )
    averages = learned_costs().average_ns()
    # one that has not learned has no say
    assert averages["a"] == (100 * 10 + 300 * 30) // 400
    assert averages["skipped"] == 0
    assert "init" not in averages


def test_costs_that_were_given_and_not_measured_since_can_be_given_on(native):
    native.learned = HEADER + (
        "1\t1\t0\tgiven\tNeg\t\t0\t70\t70\t0\t-1\n"
        "1\t1\t0\tboth\tNeg\t\t0\t70\t70\t0\t-1\n"
        "2\t1\t99\tboth\tNeg\t\t99\t50\t50\t0\t-1\n"
    )
    # what was measured counts for more
    assert learned_costs().average_ns() == {"given": 70, "both": 50}


def test_given_costs_can_be_forgotten(native):
    preload_costs(None)
    assert native.given == [""]


def test_costs_of_nobody_cannot_be_given(native):
    native.learned = HEADER + LEARNT.splitlines()[-1] + "\n"
    with pytest.raises(OptionError) as caught:
        preload_costs(learned_costs())
    assert str(caught.value) == (
        "LearnedCosts(1 executors, 0 of them have learned, 1 nodes) holds no costs to give: run an "
        "executor past its stop_step first, and take learned_costs() then"
    )
    assert native.given == []


def test_relearning_is_asked_for(native):
    relearn_costs()
    assert native.relearned == 1


def test_the_critical_nodes_are_shown_first(native):
    executors, first = learned_costs_tables(learned_costs())
    assert executors.rows == (
        ("1", "yes", "by cost", "100", "4", "1.3\u00a0µs", "1.1\u00a0µs"),
        ("2", "not yet", "–", "1", "1", "–", "–"),
    )
    assert first.caption == "Executor 1: longest path to an end of the step"
    assert [row[0] for row in first.rows] == ["a", "b", 'NA/"c', "d"]
    assert first.rows[2][1:] == (*("Neg", "100", "0.2\u00a0µs", "0.3\u00a0µs", "0.8\u00a0µs", "1"),)
    assert first.rows[3][-1] == "–"


def test_of_many_nodes_the_first_are_shown(native):
    rows = "".join(f"1\t1\t9\tn{i}\tNeg\t\t9\t5\t{i}\t0\t0\tas ready\n" for i in range(50))
    native.learned = HEADER + rows
    table = learned_costs_tables(learned_costs())[1]
    assert table.caption.endswith(", 20 of 50 nodes")
    assert [row[0] for row in table.rows] == [f"n{i}" for i in range(49, 29, -1)]


def test_a_notebook_shows_tables_and_a_terminal_text(native):
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(learned_costs())
    assert "<table" in data["text/html"]
    assert "NA/&#34;c" in data["text/html"] or "NA/&quot;c" in data["text/html"]
    assert data["text/plain"].startswith("Cost-model executors of this process\n")

"""A real SavedModel served by child processes: loads, toggles, equal answers, bad input."""

from __future__ import annotations

import itertools
import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.serving import save_scores, serving_comparison
from workbench.cli.main import main
from workbench.errors import DataError, OptionError, RunError
from workbench.experiments.serving.toggles import NOTHING_TO_FUSE

v1 = tf.compat.v1
QUICK = {"clients": (2,), "p99_limit": None, "rounds": 2, "budget": "1s", "progress": False}


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    return save_scores(tmp_path_factory.mktemp("models") / "scores")


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Rows of requests as a TFRecord file and as a Parquet file."""
    folder = tmp_path_factory.mktemp("requests")
    draw = np.random.default_rng(0)
    rows = [
        {
            "x": draw.random(3).tolist(),
            **{f"c{k}": draw.integers(0, 50, k).tolist() for k in range(4)},
        }
        for _ in range(20)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    with tf.io.TFRecordWriter(str(folder / "rows.tfrecord")) as writer:
        for row in rows:
            features = {
                name: tf.train.Feature(float_list=tf.train.FloatList(value=values))
                if name == "x"
                else tf.train.Feature(int64_list=tf.train.Int64List(value=values))
                for name, values in row.items()
            }
            example = tf.train.Example(features=tf.train.Features(feature=features))
            writer.write(example.SerializeToString())
    return folder


SOME = ("auto_fused", "inline_executor", "sessions=2", "steps_at_once=1")
OTHERS = (
    *("cost_model_executor", "caller_thread=on", "inter_op_threads=1+intra_op_threads=1"),
    *("auto_fused+inline_executor+sessions=2", "grappler=off", "xla=clusters"),
)


@pytest.mark.parametrize("others", [(), pytest.param(OTHERS, marks=pytest.mark.slow)])
def test_every_toggle_answers_alike(scores, others):
    comparison = wb.serve_bench(wb.served(scores, rows=[1, 8]), [*SOME, *others], **QUICK)
    assert len(comparison.receipts) == 2 * (4 + len(others))
    for receipt in comparison.receipts:
        assert receipt.passed and receipt.requests == 16, receipt
        if "fused" not in receipt.label and "XLA" not in receipt.label:
            assert receipt.bit_equal, receipt
    by_label = {variant.label: variant for variant in comparison.variants}
    assert by_label["auto fused"].fused_ops and not by_label["off"].fused_ops
    assert by_label["sessions 2"].sessions == 2
    assert "variables of its own" in by_label["sessions 2"].notes[0]
    assert by_label["inline executor"].steps_at_once == len(os.sched_getaffinity(0))
    assert by_label["steps at once 1"].steps_at_once == 1
    for variant in comparison.variants:
        assert [point.rows for point in variant.points] == [1, 1, 8, 8]
        for point in variant.points:
            assert point.answered and not point.failed, variant.label
            assert len(point.blocks) == 2 and point.latency.p99_ns.value > 0
            assert point.server_cpu_ns > 0 and point.client_cpu_ns > 0 and point.spans
    one_step = by_label["steps at once 1"].points[1].spans
    ordered = sorted(one_step, key=lambda span: span.start_ns)
    assert all(b.start_ns >= a.end_ns for a, b in itertools.pairwise(ordered))


def test_open_loops_and_the_rate_at_a_limit(scores):
    comparison = wb.serve_bench(
        wb.served(scores), ["inline_executor"], clients=(2,), rates=(100,), p99_limit="20x",
        rounds=2, budget="8s", progress=False,
    )  # fmt: skip
    for variant in comparison.variants:
        open_loop = variant.points[-1]
        assert open_loop.load.rate == 100 and not open_loop.failed
        assert open_loop.answered and open_loop.per_s.value < 140
        limited = variant.rate_at_limit(1)
        assert len(limited.rates) == 2 and len(limited.probes) >= 12
        assert limited.limit_ns == pytest.approx(
            20 * comparison.baseline.points[0].latency.p50_ns.value
        )
    assert "p99 within" in str(comparison)


def test_answers_are_those_of_a_session(scores):
    """The baseline's answers, which all others are compared with, are TensorFlow's own."""
    from workbench.experiments.serving.server import messages
    from workbench.experiments.worker.process import started_workers

    program = wb.served(scores, rows=3)
    with started_workers(
        [("stock", program)], child="workbench.experiments.serving.server.child:main"
    ) as (worker,):
        requests = worker.call(messages.MakeRequests(rows=(3,), count=4))
        worker.call(messages.LoadModel(optimizations=wb.Optimizations(), requests=requests))
        answers = worker.call(messages.AnswerSample(rows=3, count=4))
    with tf.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.load(session, ["serve"], str(scores))
        signature = meta.signature_def["serving_default"]
        feeds = []
        for name in sorted(signature.inputs):
            info = signature.inputs[name]
            sparse = info.coo_sparse
            feeds += [info.name] if info.name else [
                sparse.indices_tensor_name,
                sparse.values_tensor_name,
                sparse.dense_shape_tensor_name,
            ]  # fmt: skip
        fetch = signature.outputs["scores"].name
        for request, (value,) in zip(requests.by_rows[3], answers.values, strict=True):
            expected = session.run(fetch, dict(zip(feeds, request, strict=True)))
            assert value.tobytes() == expected.tobytes()
    assert answers.outputs == ("scores",) and answers.errors == ("",) * 4


@pytest.mark.parametrize("name", ["rows.tfrecord", "rows.parquet"])
def test_requests_from_a_file(scores, features, name):
    program = wb.served(scores, requests=features / name, rows=[1, 4])
    comparison = wb.serve_bench(program, ["auto_fused"], **QUICK)
    assert all(not point.failed for variant in comparison.variants for point in variant.points)
    assert all(receipt.passed for receipt in comparison.receipts)
    assert "20 rows of" in comparison.requests_from and name in comparison.requests_from


def requests_of_two(failing=()):
    def requests():
        for number in range(6):
            ids = np.array([[number % 5], [7]])
            if number in failing:
                ids = ids + 1000
            yield {"x": np.ones([2, 3]), **{f"c{k}": ids for k in range(4)}}

    return requests


def test_requests_from_a_function(scores):
    comparison = wb.serve_bench(wb.served(scores, requests=requests_of_two()), **QUICK)
    assert [point.rows for point in comparison.baseline.points] == [2, 2]
    assert comparison.requests_from.startswith("6 requests of 'requests'")


def test_a_request_that_fails_is_counted_and_the_run_goes_on(scores):
    comparison = wb.serve_bench(
        wb.served(scores, requests=requests_of_two(failing={3})), ["inline_executor"], **QUICK
    )
    for variant in comparison.variants:
        for point in variant.points:
            assert point.failed and point.answered > point.failed
            assert "1003" in point.first_error
    assert "failed, first:" in str(comparison)
    assert all(receipt.bit_equal for receipt in comparison.receipts)


def test_where_every_request_fails_it_says_so(scores):
    program = wb.served(scores, requests=requests_of_two(failing=range(6)))
    with pytest.raises(RunError, match=r"every request fails: .*1000"):
        wb.serve_bench(program, **QUICK)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"c9": [[1]]}, "has an unknown 'c9'; signature 'serving_default' has 'c0', sparse int64"),
        ({"x": None}, "lacks the input 'x'"),
        ({"x": np.ones([2, 4])}, r"'x', float32 \[\?, 3\], is given the shape \[2, 4\]"),
        ({"x": np.array([["a"] * 3] * 2)}, r"'x', float32 \[\?, 3\], is given str"),
        ({"c1": np.ones([2, 1])}, "'c1', sparse int64 .* is given float64"),
        ({"c1": ([[0, 0], [5, 0]], [1, 2], [2, 1])}, r"has an index outside of \[2, 1\]"),
        ({"c1": ([[0, 0]], [1, 2], [2, 1])}, r"indices of the shape \[1, 2\]"),
    ],
)
def test_requests_that_do_not_fit(scores, change, words):
    def requests():
        request = next(requests_of_two()()) | change
        yield {name: value for name, value in request.items() if value is not None}

    with pytest.raises(DataError, match=words):
        wb.serve_bench(wb.served(scores, requests=requests), **QUICK)


def test_a_folder_that_is_no_saved_model(scores, tmp_path):
    with pytest.raises(DataError, match="there is no such folder"):
        wb.served(tmp_path / "none")
    shutil.copytree(scores, tmp_path / "versions" / "7")
    with pytest.raises(
        DataError, match=r"holds no saved_model.pb or saved_model.pbtxt, but '7' below it does"
    ):
        wb.serve_bench(wb.served(tmp_path / "versions"), **QUICK)
    (tmp_path / "saved_model.pb").write_bytes(b"no such thing")
    with pytest.raises(DataError, match="saved_model.pb is damaged"):
        wb.serve_bench(wb.served(tmp_path), **QUICK)
    shutil.copytree(scores, tmp_path / "halved")
    for part in (tmp_path / "halved" / "variables").iterdir():
        part.unlink()
    with pytest.raises(DataError, match=r"graph has variables, and .*index is not there"):
        wb.serve_bench(wb.served(tmp_path / "halved"), **QUICK)


def test_a_signature_that_is_not_there(scores):
    with pytest.raises(OptionError, match="no signature 'other'; it has 'serving_default'"):
        wb.serve_bench(wb.served(scores, signature="other"), **QUICK)


def test_files_that_hold_no_requests(scores, features, tmp_path):
    (tmp_path / "text.csv").write_text("a,b\n1,2\n" * 20)
    pq.write_table(pa.table({"x": [[0.0] * 3]}), tmp_path / "short.parquet")
    for file, words in (
        (tmp_path / "text.csv", "neither a TFRecord nor a Parquet file"),
        (tmp_path / "none", "No such file"),
        (tmp_path / "short.parquet", "has no column 'c0', only 'x'"),
    ):
        with pytest.raises(DataError, match=words):
            wb.serve_bench(wb.served(scores, requests=file), **QUICK)
    with pytest.raises(OptionError, match="leave out rows"):
        wb.served(scores, requests=requests_of_two(), rows=3)


def test_a_graph_with_feeds_and_fetches():
    with tf.Graph().as_default() as graph:
        words = v1.placeholder(tf.string, [None], name="words")
        table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -1
        )
        weight = v1.get_variable("weight", [], tf.float32, v1.constant_initializer(3.0))
        value = weight * tf.cast(table.lookup(words), tf.float32)
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            session.run(v1.assign(weight, 5.0))
            nodes = len(graph.as_graph_def().node)
            program = wb.served(
                graph, feeds={"words": words}, fetches={"value": value, "words": "words"},
                session=session, requests=requests_of_words, name="words",
            )  # fmt: skip
    size = len(graph.as_graph_def().node)
    graph.finalize()
    # Also of a finished graph, to which nothing is added.
    wb.served(graph, feeds={"words": words}, fetches={"value": value})
    assert size == len(graph.as_graph_def().node) == nodes
    comparison = wb.serve_bench(program, ["inline_executor"], **QUICK)
    assert comparison.program == "words" and comparison.receipts[0].bit_equal
    with pytest.raises(OptionError, match="feeds and fetches"):
        wb.served(graph)


def requests_of_words():
    yield {"words": ["a", "b", "c"]}


def test_the_command(scores, tmp_path, capfd):
    saved, report = tmp_path / "serving.json", tmp_path / "served.html"
    code = main(
        [
            *("serve-bench", str(scores), "--clients", "1,2", "--rows", "1,2", "--rounds", "2"),
            *("--toggle", "auto_fused+inline_executor", "--p99-limit", "none", "--budget", "1s"),
            *("--save", str(saved), "--report", str(report), "--json"),
        ]
    )
    out, err = capfd.readouterr()
    assert code == 0
    document = json.loads(out)
    assert document["wrote"] == [str(saved), str(report)] and document["error"] is None
    assert document["results"][0]["answer"]
    assert "What holds requests up" in report.read_text("utf-8")
    assert "requests/s" in err and "Comparing answers" in err
    assert "serve-bench" in wb.load_serving(saved).command


def test_without_a_toggle_the_command_measures_what_the_model_can_have(
    tmp_path, monkeypatch, capfd
):
    asked = []

    def measured(program, toggles, **_):
        asked.append(toggles)
        if "auto_fused" in toggles[0]:
            raise OptionError(f"{NOTHING_TO_FUSE} in the graph of this SavedModel")
        return serving_comparison()

    monkeypatch.setattr("workbench.experiments.serving.serve_bench.serve_bench", measured)
    assert main(["serve-bench", str(tmp_path)]) == 0
    assert asked == [["auto_fused+inline_executor"], ["inline_executor"]]
    said = "this SavedModel; measuring inline_executor instead of auto_fused+inline_executor"
    assert said in capfd.readouterr().out
    assert main(["serve-bench", str(tmp_path), "--toggle", "auto_fused"]) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "there is no such folder"),
        (["none", "--toggle", "stage"], "no input that could run ahead"),
        (["none", "--p99-limit", "soon"], "p99_limit is 'soon'"),
        (["none", "--rate", "0"], "is no rate"),
        (["none", "--clients", "1,x"], "is not a whole number"),
    ],
)
def test_mistakes_on_the_command_line(arguments, words, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["serve-bench", *arguments])
    except SystemExit as exit_:
        code = exit_.code
    assert code == 2 and words in capfd.readouterr().err

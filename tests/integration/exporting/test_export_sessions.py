"""What a session computes loads where Workbench is not installed, and gives the same bits."""

from __future__ import annotations

import shutil
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.stock_python import stock_outputs
from workbench import _native
from workbench.exporting.saved_proto import read_saved_model
from workbench.exporting.session.signatures import tensor_names
from workbench.ops import (
    AdagradOptimizer,
    CBFFilter,
    CounterFilter,
    EmbeddingVariableOption,
    InitializerOption,
    fused_safe_embedding_lookup_sparse,
    get_embedding_variable,
    grouped_embedding_lookup,
)

v1 = tf.compat.v1
ROWS, WIDE = 10_000, 4


def many_ids(random: np.random.Generator, known: int) -> np.ndarray:
    """[ROWS, WIDE] keys, a third of them unknown, some of them padding."""
    ids = random.integers(0, known + known // 2, (ROWS, WIDE))
    ids[random.random(ids.shape) < 0.2] = -1
    ids[::97] = -1
    return ids.astype(np.int64)


def sparse(ids: tf.Tensor) -> tf.SparseTensor:
    where = tf.where(ids >= 0)
    return tf.SparseTensor(where, tf.gather_nd(ids, where), tf.shape(ids, out_type=tf.int64))


def option(**options) -> EmbeddingVariableOption:
    start = InitializerOption(
        initializer=v1.random_normal_initializer(seed=3),
        default_value_dim=13,
        default_value_no_permission=0.25,
    )
    return EmbeddingVariableOption(init_option=start, **options)


def trained(session: v1.Session, ids: tf.Tensor, vectors: list, steps: int = 3) -> None:
    """Makes rows for keys below 300, and moves them."""
    loss = tf.add_n([tf.reduce_sum(tf.square(each)) for each in vectors])
    train = AdagradOptimizer(0.1).minimize(loss)
    session.run(v1.global_variables_initializer())
    random = np.random.default_rng(1)
    for _ in range(steps):
        session.run(train, {ids: random.integers(0, 300, (400, WIDE))})


@pytest.mark.parametrize("session_loads", [False, True], ids=["objects", "session"])
@pytest.mark.parametrize("kind", ["v1", "v2", "grouped"])
def test_rows_of_an_embedding_variable(kind, session_loads, tmp_path):
    table = get_embedding_variable("user", 16, ev_option=option())
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    if kind == "grouped":
        vectors = grouped_embedding_lookup([table] * 2, [sparse(ids)] * 2, None, ["mean", "sum"])
    else:
        vectors = [
            fused_safe_embedding_lookup_sparse(
                table, sparse(ids), combiner=combiner, fusion_version=kind
            )
            for combiner in ("mean", "sqrtn")
        ]
    plain = table.sparse_read(ids[:, 0])
    outputs = {"first": vectors[0], "second": vectors[1], "plain": plain}
    given = many_ids(np.random.default_rng(0), 300)
    with v1.Session() as session:
        trained(session, ids, vectors)
        result = wb.export(session, tmp_path / "out", inputs={"ids": ids}, outputs=outputs)
        rows = session.run(table.total_count())
        assert dict(result.rows) == {"user": rows} and rows == 300
        # Looking up makes rows, but they are those that unknown keys read.
        expected = session.run(outputs, {ids: given})
    found = stock_outputs(tmp_path / "out", {"ids": given}, tmp_path, session=session_loads)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert value.shape[0] == ROWS
        np.testing.assert_array_equal(found[name].view(np.uint32), value.view(np.uint32), name)


@pytest.mark.parametrize(
    "kept_out",
    [CounterFilter(2), CBFFilter(2, max_element_size=1000, false_positive_probability=0.01)],
    ids=["counter", "bloom"],
)
def test_keys_that_a_filter_keeps_out(kept_out, tmp_path):
    table = get_embedding_variable("user", 8, ev_option=option(filter_option=kept_out))
    keys = v1.placeholder(tf.int64, [None], "keys")
    rows, only_read = table.sparse_read(keys), table.sparse_read(keys, read_only=True)
    given = np.arange(-5, 40)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(rows, {keys: np.arange(20)})
        session.run(rows, {keys: np.arange(10)})
        wb.export(session, tmp_path / "out", inputs={"keys": keys}, outputs={"rows": rows})
        expected = session.run(only_read, {keys: given})
    found = stock_outputs(tmp_path / "out", {"keys": given}, tmp_path)["rows"]
    np.testing.assert_array_equal(found, expected)
    assert np.all(expected[given >= 10] == 0.25) and not np.any(expected[5:15] == 0.25)


def test_partitions_of_an_embedding_variable(tmp_path):
    table = get_embedding_variable(
        "user", 8, ev_option=option(), partitioner=tf.compat.v1.fixed_size_partitioner(3)
    )
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    vectors = fused_safe_embedding_lookup_sparse(table, sparse(ids), fusion_version="v2")
    given = many_ids(np.random.default_rng(0), 300)
    with v1.Session() as session:
        trained(session, ids, [vectors])
        result = wb.export(session, tmp_path / "out", inputs=[ids], outputs={"vectors": vectors})
        expected = session.run(vectors, {ids: given})
    found = stock_outputs(tmp_path / "out", {"ids": given}, tmp_path)["vectors"]
    np.testing.assert_array_equal(found, expected)
    assert sum(result.rows.values()) == 300 and len(result.rows) == 3


def test_an_empty_embedding_variable_reads_default_rows(tmp_path):
    table = get_embedding_variable("user", 8, ev_option=option())
    keys = v1.placeholder(tf.int64, [None], "keys")
    rows = table.sparse_read(keys, read_only=True)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wb.export(session, tmp_path / "out", inputs=keys, outputs={"rows": rows})
        expected = session.run(rows, {keys: [7, -7, 2**62]})
    found = stock_outputs(tmp_path / "out", {"keys": np.array([7, -7, 2**62])}, tmp_path)
    np.testing.assert_array_equal(found["rows"], expected)


def test_ref_and_resource_variables_of_every_dtype(tmp_path):
    values = {
        "half": np.array([[1, 2]], np.float16),
        "number": np.array([3, 4], np.int64),
        "word": np.array(["a", "b"], object),
    }
    outputs = {}
    for name, value in values.items():
        for resource in (False, True):
            variable = v1.get_variable(
                f"scope/{name}_{resource}", initializer=tf.constant(value), use_resource=resource
            )
            outputs[f"{name}_{resource}"] = tf.identity(variable)
    scale = v1.placeholder(tf.float32, [], "scale")
    outputs["scaled"] = scale * 2
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wb.export(session, tmp_path / "out", inputs=[scale], outputs=outputs)
        expected = session.run(outputs, {scale: 1.5})
    found = stock_outputs(tmp_path / "out", {"scale": np.float32(1.5)}, tmp_path)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_signatures_and_vocabulary_files(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("apple\nbanana\n")
    table = tf.lookup.StaticVocabularyTable(
        tf.lookup.TextFileInitializer(
            str(words),
            tf.string,
            tf.lookup.TextFileIndex.WHOLE_LINE,
            tf.int64,
            tf.lookup.TextFileIndex.LINE_NUMBER,
        ),
        1,
    )
    counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    counts.export()
    weight = v1.get_variable("weight", [3], initializer=v1.constant_initializer([1.0, 2.0, 3.0]))
    text = v1.placeholder(tf.string, [None], "text")
    ids = table.lookup(text)
    signatures = {
        "ids": ({"text": text}, {"ids": ids}),
        "weights": ({"text": text}, {"weights": tf.gather(weight, ids)}),
        "counts": ({"text": text}, {"counts": counts.lookup(text)}),
    }
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        session.run(counts.insert(["apple"], tf.constant([5], tf.int64)))
        result = wb.export(session, tmp_path / "out", signatures=signatures)
    words.unlink()
    assert result.signatures == ("counts", "ids", "weights")
    given = {"text": np.array(["banana", "cherry", "apple"])}
    for signature, expected in (
        ("ids", [1, 2, 0]),
        ("weights", [2.0, 3.0, 1.0]),
        ("counts", [-1, -1, 5]),
    ):
        for session_loads in (False, True):
            found = stock_outputs(
                tmp_path / "out", given, tmp_path, signature=signature, session=session_loads
            )
            assert found[signature].tolist() == expected


def test_a_model_that_was_saved_with_its_ops(tmp_path):
    table = get_embedding_variable("user", 8, ev_option=option())
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    vectors = fused_safe_embedding_lookup_sparse(table, sparse(ids), fusion_version="v1")
    given = many_ids(np.random.default_rng(0), 300)
    with v1.Session() as session:
        trained(session, ids, [vectors])
        v1.saved_model.simple_save(session, str(tmp_path / "own/1"), {"ids": ids}, {"v": vectors})
        expected = session.run(vectors, {ids: given})
    result = wb.export(tmp_path / "own", tmp_path / "out")
    assert result.rows == {"user": 300} and result.signatures == ("serving_default",)
    found = stock_outputs(tmp_path / "out/1", {"ids": given}, tmp_path)["v"]
    np.testing.assert_array_equal(found, expected)


def test_a_stage_that_inputs_feed_is_passed_by(tmp_path):
    ids = v1.placeholder(tf.int64, [None], "ids")
    taken = wb.staged({"ids": ids * 2}, feed_dict={ids: tf.constant([1], tf.int64)})
    weight = v1.get_variable("weight", [100], initializer=v1.ones_initializer())
    output = tf.gather(weight, taken["ids"]) * tf.cast(taken["ids"], tf.float32)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        result = wb.export(session, tmp_path / "out", inputs=[ids], outputs={"y": output})
    assert result.stage_inputs == ()
    found = stock_outputs(tmp_path / "out", {"ids": np.array([3, 4])}, tmp_path)["y"]
    assert found.tolist() == [6.0, 8.0]


def test_what_a_stage_hands_out_becomes_an_input(tmp_path):
    data = tf.data.Dataset.range(10).batch(2)
    batch = v1.data.make_one_shot_iterator(data).get_next()
    taken = wb.staged({"ids": batch, "other": batch + 1}, name="stage")
    output = taken["ids"] * 10 + taken["other"]
    with v1.Session() as session:
        result = wb.export(session, tmp_path / "out", outputs={"y": output})
        assert result.stage_inputs == ("stage_0", "stage_1")
        # Or by the tensors that the program has.
        wb.export(session, tmp_path / "named", inputs=taken, outputs={"y": output})
    given = np.array([1, 2]), np.array([5, 6])
    by_stage = dict(zip(("stage_0", "stage_1"), given, strict=True))
    assert stock_outputs(tmp_path / "out", by_stage, tmp_path)["y"].tolist() == [15, 26]
    by_name = dict(zip(("ids", "other"), given, strict=True))
    assert stock_outputs(tmp_path / "named", by_name, tmp_path)["y"].tolist() == [15, 26]


def test_an_output_that_is_an_input(tmp_path):
    ids = v1.sparse_placeholder(tf.int64, [None, None], "ids")
    x = v1.placeholder(tf.float32, [None], "x")
    middle = x + 1
    inputs = {"ids": ids, "x": x, "middle": middle}
    outputs = {"ids": ids.values, "x": x, "again": x, "middle": middle, "y": middle * 2}
    with v1.Session() as session:
        wb.export(session, tmp_path / "out", inputs=inputs, outputs=outputs)
    (meta,) = read_saved_model(tmp_path / "out").meta_graphs
    signature = meta.signature_def["serving_default"]
    fed = {name for info in signature.inputs.values() for name in tensor_names(info)}
    assert len(fed) == 5
    assert fed.isdisjoint(info.name for info in signature.outputs.values())
    with tf.Graph().as_default(), v1.Session() as session:
        v1.saved_model.load(session, ["serve"], str(tmp_path / "out"))
        sparse = signature.inputs["ids"].coo_sparse
        given = {
            signature.inputs["x"].name: [1.0],
            signature.inputs["middle"].name: [5.0],
            sparse.values_tensor_name: [3],
        }
        names = {name: info.name for name, info in signature.outputs.items()}
        found = {name: value.tolist() for name, value in session.run(names, given).items()}
    assert found == {"ids": [3], "x": [1.0], "again": [1.0], "middle": [5.0], "y": [10.0]}


def test_signatures_that_begin_at_tensors_of_each_other(tmp_path):
    x = v1.placeholder(tf.float32, [None], "x")
    weight = v1.get_variable("weight", [2], initializer=v1.constant_initializer([1.0, 2.0]))
    middle = tf.identity(x * 10, "middle")
    parts = tf.split(middle * weight, 2, name="parts")
    # A dot interaction keeps the shape that its inputs have.
    rows = tf.reshape(tf.concat([middle, parts[1]], 0), [1, 3, 1])
    dots = _native.library().workbench_dot_interaction(x=rows, vectors=3, pairs=[1])
    v1.disable_control_flow_v2()
    try:
        _, grown = tf.while_loop(
            lambda i, _: i < 3, lambda i, value: (i + 1, value + middle), [0, middle], name="loop"
        )
    finally:
        v1.enable_control_flow_v2()
    outputs = {"first": parts[0], "dots": dots, "grown": grown}
    signatures = {
        "whole": ({"x": x}, outputs),
        "cut": ({"t": middle}, outputs),
        "both": ({"x": x, "t": middle}, {"sum": x + parts[1]}),
    }
    given = {"x": np.float32([1, 2]), "t": np.float32([3, 4])}
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wb.export(session, tmp_path / "out", signatures=signatures)
        for name, (inputs, wanted) in signatures.items():
            fed = {tensor: given[key] for key, tensor in inputs.items()}
            expected = session.run(wanted, fed)
            named = {key: given[key] for key in inputs}
            for loads in (False, True):
                found = stock_outputs(
                    tmp_path / "out", named, tmp_path, signature=name, session=loads
                )
                for key, value in expected.items():
                    np.testing.assert_array_equal(found[key], value, f"{name} {key}")


def test_default_values_of_inputs_stay(tmp_path):
    x = v1.placeholder(tf.float32, [], "x")
    signature = v1.saved_model.build_signature_def(
        {"x": v1.saved_model.build_tensor_info(x)},
        {"y": v1.saved_model.build_tensor_info(x + 1)},
        "a/method",
    )
    signature.defaults["x"].CopyFrom(tf.make_tensor_proto(4.0))
    with v1.Session() as session:
        wb.export(session, tmp_path / "out", signatures={"s": signature})
    (meta,) = read_saved_model(tmp_path / "out").meta_graphs
    assert meta.signature_def["s"].defaults["x"] == signature.defaults["x"]
    assert meta.signature_def["s"].method_name == "a/method"


@pytest.mark.parametrize("saved", [False, True], ids=["session", "folder"])
def test_every_file_that_a_model_names_is_copied(saved, tmp_path):
    words, own = tmp_path / "words.txt", tmp_path / "own"
    words.write_text("apple banana")
    file = tf.constant(str(words))
    v1.add_to_collection(v1.GraphKeys.ASSET_FILEPATHS, file)
    # No op that fills a table from a file reads it.
    known = tf.strings.split([tf.io.read_file(file)]).values
    start = tf.lookup.KeyValueTensorInitializer(known, tf.range(2, dtype=tf.int64), tf.string)
    text = v1.placeholder(tf.string, [None], "text")
    ids = tf.lookup.StaticHashTable(start, -1).lookup(text)
    rows = get_embedding_variable("user", 2).sparse_read(ids, read_only=True)
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        ends = {"text": text}, {"ids": ids, "rows": rows}
        if saved:
            v1.saved_model.simple_save(session, str(own), *ends, v1.tables_initializer())
            words.unlink()
        wb.export(own if saved else session, tmp_path / "out", **{} if saved else named(*ends))
    shutil.rmtree(own) if saved else words.unlink()
    given = {"text": np.array(["banana", "cherry"])}
    assert stock_outputs(tmp_path / "out", given, tmp_path)["ids"].tolist() == [1, -1]


def named(inputs: dict, outputs: dict) -> dict:
    return {"inputs": inputs, "outputs": outputs}


@pytest.mark.parametrize("monitored", [False, True])
def test_kept_ops_load_by_one_line(monitored, tmp_path):
    table = get_embedding_variable("user", 8, ev_option=option())
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    vectors = fused_safe_embedding_lookup_sparse(table, sparse(ids), fusion_version="v1")
    loss = tf.reduce_sum(tf.square(vectors))
    train = AdagradOptimizer(0.1).minimize(loss, v1.train.get_or_create_global_step())
    given = many_ids(np.random.default_rng(0), 300)
    open_session = v1.train.MonitoredTrainingSession if monitored else v1.Session
    with open_session() as session:
        if not monitored:
            session.run(v1.global_variables_initializer())
        session.run(train, {ids: np.arange(400).reshape(100, WIDE)})
        result = wb.export(
            session, tmp_path / "out", inputs=[ids], outputs={"v": vectors}, keep_ops=True
        )
        expected = session.run(vectors, {ids: given})
    assert "WorkbenchEmbeddingGather" in result.kept and result.rows == {"user": 400}
    with context.eager_mode():
        loaded = wb.load_saved(tmp_path / "out")
        call = loaded.signatures["serving_default"]
        found = call(ids=tf.constant(given))["v"].numpy()
        np.testing.assert_array_equal(found, expected)
        # Serving made no row of an unknown key, so that another call reads the same.
        np.testing.assert_array_equal(call(ids=tf.constant(given))["v"].numpy(), expected)


def test_sparse_tensors_of_a_signature(tmp_path):
    ids = v1.sparse_placeholder(tf.int64, [None, None], "ids")
    table = v1.get_variable("table", [10, 4])
    vectors = fused_safe_embedding_lookup_sparse(table, ids, fusion_version="v2")
    given = v1.SparseTensorValue(np.array([[0, 0], [0, 1], [2, 0]]), np.array([1, 2, 3]), (3, 2))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wb.export(session, tmp_path / "out", inputs={"ids": ids}, outputs={"v": vectors})
        expected = session.run(vectors, {ids: given})
    parts = {f"ids_{name}": np.array(getattr(given, name)) for name in given._fields}
    found = stock_outputs(tmp_path / "out", parts, tmp_path)["v"]
    np.testing.assert_array_equal(found, expected)


def test_rows_that_are_read_in_a_branch_of_the_graph(tmp_path):
    table = get_embedding_variable("user", 4, ev_option=option())
    keys = v1.placeholder(tf.int64, [None], "keys")
    twice = v1.placeholder(tf.bool, [], "twice")
    v1.disable_control_flow_v2()
    try:
        rows = v1.cond(
            twice,
            lambda: table.sparse_read(keys, read_only=True) * 2,
            lambda: table.sparse_read(keys + 1, read_only=True),
        )
    finally:
        v1.enable_control_flow_v2()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wb.export(session, tmp_path / "out", inputs=[keys, twice], outputs={"rows": rows})
        for chosen in (True, False):
            expected = session.run(rows, {keys: [1, 2], twice: chosen})
            given = {"keys": np.array([1, 2]), "twice": np.array(chosen)}
            found = stock_outputs(tmp_path / "out", given, tmp_path)["rows"]
            np.testing.assert_array_equal(found, expected)


def test_a_session_whose_config_fuses_lookups(tmp_path):
    ids = v1.placeholder(tf.int64, [None, 3], "ids")
    table = v1.get_variable("table", [10, 4], use_resource=False)
    vectors = v1.nn.safe_embedding_lookup_sparse(table, tf.sparse.from_dense(ids))
    train = v1.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.square(vectors)))
    plan = wb.plan_fusion(v1.get_default_graph())
    assert plan.count
    given = np.array([[1, 2, 0], [0, 0, 0], [4, 4, 9]])
    with v1.train.MonitoredTrainingSession(config=wb.apply(plan)) as session:
        session.run(train, {ids: given})
        result = wb.export(session, tmp_path / "out", inputs=[ids], outputs={"v": vectors})
        expected = session.run(vectors, {ids: given})
    assert not result.replaced
    found = stock_outputs(tmp_path / "out", {"ids": given}, tmp_path)["v"]
    # The export has the graph's own lookup, which rounds in another way than a fused one.
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_table_that_trains_meanwhile_is_copied_at_one_moment(tmp_path):
    table = get_embedding_variable("user", 2, initializer=v1.zeros_initializer())
    keys = v1.placeholder(tf.int64, [None], "keys")
    rows = table.sparse_read(keys)
    moved = table.scatter_sub(tf.IndexedSlices(-tf.ones([500, 2]), tf.range(500)))
    ended = threading.Event()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(rows, {keys: np.arange(500)})
        step = session.make_callable(moved)

        def train() -> None:
            while not ended.is_set():
                step()

        thread = threading.Thread(target=train)
        thread.start()
        try:
            for number in range(3):
                wb.export(session, tmp_path / f"{number}", inputs=[keys], outputs={"rows": rows})
        finally:
            ended.set()
            thread.join()
    copied = [
        stock_outputs(tmp_path / f"{number}", {"keys": np.arange(500)}, tmp_path)["rows"]
        for number in range(3)
    ]
    steps = [np.unique(each) for each in copied]
    # Each step moves all rows alike.
    assert [len(each) for each in steps] == [1, 1, 1]
    assert steps[0] < steps[1] < steps[2]

"""The table of DeepRec's parameters is whole, and each row says what happens."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.parameter_table import HOME, Row, page_of, rows
from tests.builders.scripts import printed, run_script
from workbench._native import has_executors
from workbench.compat import config, executor_policy, smart_stage, staging, training
from workbench.compat.contrib import feature_column as contrib_columns
from workbench.compat.contrib import layers
from workbench.compat.nn import (
    embedding_lookup,
    embedding_lookup_sparse,
    fused_embedding_lookup_sparse,
    fused_embedding_lookup_sparse_v2,
    fused_safe_embedding_lookup_sparse,
    safe_embedding_lookup_sparse,
)
from workbench.ops.embedding_variable import variable
from workbench.ops.feature_column import columns
from workbench.ops.lookup.fusion import fused_embeddings

v1 = tf.compat.v1
TABLE = rows()
# What the sections of the table describe: functions and options, by the names that scripts use.
CALLED: Mapping[str, Callable[..., Any]] = {
    "tf.staged": staging.staged,
    "tf.prefetch_join": staging.prefetch_join,
    "tf.SmartStageOptions": smart_stage.SmartStageOptions,
    "tf.train.mark_target_node": training.mark_target_node,
    "tf.SessionStageSubgraphThreadPool": config.SessionStageSubgraphThreadPool,
    **{
        f"tf.feature_column.{name}": getattr(columns, name)
        for name in columns.__all__
        if inspect.isfunction(getattr(columns, name))
    },
    **{
        f"tf.contrib.layers.{name}": getattr(layers, name)
        for name in layers.__all__
        if inspect.isfunction(getattr(layers, name)) and "lookup" not in name
    },
    "tf.contrib.feature_column.sequence_input_layer": contrib_columns.sequence_input_layer,
    "tf.nn.fused_embedding_lookup_sparse": fused_embedding_lookup_sparse,
    "tf.nn.fused_embedding_lookup_sparse_v2": fused_embedding_lookup_sparse_v2,
    "tf.nn.fused_safe_embedding_lookup_sparse": fused_safe_embedding_lookup_sparse,
    "tf.nn.safe_embedding_lookup_sparse": safe_embedding_lookup_sparse,
    "tf.nn.embedding_lookup_sparse": embedding_lookup_sparse,
    "tf.nn.embedding_lookup": embedding_lookup,
    "tf.fused_embeddings": fused_embeddings,
    **{
        f"tf.{name}": getattr(variable, name)
        for name in (
            "get_embedding_variable",
            "EmbeddingVariableOption",
            "CounterFilter",
            "CBFFilter",
            "GlobalStepEvict",
            "InitializerOption",
        )
    },
}
OWN_FIELDS = [
    *config._OURS,
    *(f"{path}.{name}" for path, names in config._REFUSED.items() for name in names),
    "ConfigProto.session_stage_subgraph_thread_pool",
    "ConfigProto.executor_policy",
]
READ_VARIABLES = [executor_policy._START, executor_policy._STOP]
READ_VARIABLES += [policy.name for policy in executor_policy._SWITCHES]
# Of stock TensorFlow; the documents recommend them.
STOCKS_VARIABLES = ["TF_GPU_THREAD_MODE", "TF_GPU_THREAD_COUNT"]
# What the rows' code uses.
NAMES = """
import json, logging, sys
rows = json.load(open(sys.argv[1]))
said = []
handler = logging.Handler()
handler.emit = lambda record: said.append(record.getMessage())
logging.getLogger("workbench").addHandler(handler)
from workbench import ignored
from workbench.core.session.running import thread_pool
from workbench.compat import smart_stage

def names():
    x = tf.constant([1.0])
    pools = tf.ConfigProto()
    pools.session_stage_subgraph_thread_pool.add()
    age = tf.feature_column.numeric_column("age")
    column = tf.feature_column.categorical_column_with_identity("id", 8)
    ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
    return {
        "tf": tf, "x": x, "a": x, "b": x, "tensor": x, "placeholder": tf.placeholder(tf.float32),
        "loss": tf.reduce_sum(x), "config": pools, "column": column,
        "other": tf.feature_column.categorical_column_with_identity("other", 8),
        "table": tf.ones([8, 2]), "ids": ids, "features": {"age": [[1.0]], "id": ids},
        "weights": tf.SparseTensor(ids.indices, [1.0], ids.dense_shape), "parts": {},
        "columns": [age], "l2": len, "getter": len, "clip": len,
    }

def outcome(section, code):
    for warned in (ignored._warned, thread_pool._warned, smart_stage._warned):
        warned.clear()
    said.clear()
    with tf.Graph().as_default():
        scope = names()
        if "sequence_input_layer" in section:
            history = tf.feature_column.sequence_categorical_column_with_identity("id", 8)
            scope["columns"] = [tf.feature_column.embedding_column(history, 2)]
        if section == "tf.nn.embedding_lookup":
            scope["ids"] = [1]
        try:
            exec(code, scope)
            scope["config"].to_stock(tf.get_default_graph())
        except NotImplementedError as error:
            return "refused", [str(error)]
    return "passed", list(said)

print(json.dumps([outcome(*row) for row in rows]))
"""


def code_rows() -> list[Row]:
    """Rows whose last but one cell is Python, and runs with this TensorFlow."""
    found = [row for row in TABLE if row.section not in ("Environment variables", "Ops")]
    return [row for row in found if has_executors() or page_of(row).stem != "executors"]


def outcomes(folder: Path) -> list[tuple[str, list[str]]]:
    """What the code of each of those rows does, in one process of DeepRec's kind."""
    path = folder / "rows.json"
    path.write_text(json.dumps([[row.section, row.run] for row in code_rows()]))
    script = "import workbench.compat.v1 as tf\n" + NAMES
    done = run_script(script, folder, str(path))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_each_row_does_what_it_says(tmp_path):
    for row, (what, said) in zip(code_rows(), outcomes(tmp_path), strict=True):
        where = (row.section, row.parameter, row.run, said)
        refused, warns = (row.works.startswith(word) for word in ("refused", "warns"))
        warns |= "with TensorFlow 2.18 and 2.19 it warns" in row.works and not has_executors()
        assert (what == "refused") == refused, where
        if refused or warns:
            assert any(names_it(row, each) for each in said), where
        else:
            assert not [each for each in said if "has no effect" in each], where


def names_it(row: Row, message: str) -> bool:
    """Whether a message names the parameter, or the function that is refused whole."""
    words = re.sub(r"[-_ ]", "", message)
    called = row.run.partition("(")[0].rpartition(".")[2]
    parameter = row.parameter.rpartition(".")[2].removesuffix("_num").replace("_", "")
    return parameter in words or called in message


def test_what_is_shown_uses_the_parameter():
    for row in code_rows():
        ast.parse(row.run)
        called = CALLED.get(row.section)
        if called is not None and row.section.rpartition(".")[2] in row.run:
            first = [*inspect.signature(called).parameters][:2]
            assert row.parameter in (*first, "dimension", "combiner") or row.parameter in row.run, (
                row
            )


@pytest.mark.parametrize("section", CALLED)
def test_no_parameter_is_missing_and_none_is_made_up(section):
    listed = [row.parameter for row in TABLE if row.section == section]
    assert sorted(listed) == sorted(inspect.signature(CALLED[section]).parameters)


def test_no_field_policy_or_variable_is_missing_and_none_is_made_up():
    def listed(section: str) -> list[str]:
        return sorted(row.parameter for row in TABLE if row.section == section)

    fields = [name.removeprefix("ConfigProto.") for name in OWN_FIELDS]
    assert listed("tf.ConfigProto") == sorted(fields)
    assert listed("tf.ExecutorPolicy") == sorted(executor_policy.ExecutorPolicy.__members__)
    assert listed("Environment variables") == sorted(READ_VARIABLES + STOCKS_VARIABLES)


def test_no_name_that_scripts_are_offered_is_missing(tmp_path):
    (line,) = printed("print(*tf.__all__)", tmp_path)
    sections = {row.section for row in TABLE} | {row.parameter for row in TABLE}
    # Stock TensorFlow's own classes that take a ConfigProto, the modules, and what `get_…` returns.
    beside = {"InteractiveSession", "Session", "EmbeddingVariable"}
    beside |= {"contrib", "feature_column", "nn", "train"}
    missing = [name for name in line.split() if f"tf.{name}" not in sections]
    assert set(missing) == beside


def names_of_tests(path: Path) -> set[str]:
    """Names of the tests of a file, those of classes with their class."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            inner = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            names |= {f"{node.name}::{each.name}" for each in inner}
    return names


def test_every_named_test_and_page_exists():
    assert len(TABLE) > 200
    known: dict[Path, set[str]] = {}
    for row in TABLE:
        name, _, test = row.test.partition("::")
        path = (HOME / "tests" / "integration" / name).resolve()
        assert path.is_file(), row
        if path not in known:
            known[path] = names_of_tests(path)
        assert test in known[path], row
        assert test.rpartition("::")[2].startswith("test_"), row
        assert page_of(row).is_file(), row


# What no other test shows.


def identity(key: str = "id") -> Any:
    return v1.feature_column.categorical_column_with_identity(key, 8)


def ids() -> tf.SparseTensor:
    return tf.SparseTensor([[0, 0], [1, 0]], tf.constant([3, 3], tf.int64), [2, 1])


@pytest.mark.parametrize(
    "option",
    [
        {"combiner": "sum"},
        {"max_norm": 0.5},
        {"trainable": False},
        {"use_safe_embedding_lookup": False},
        {"do_fusion": "v1"},
    ],
    ids=lambda option: next(iter(option)),
)
def test_an_option_of_a_column_is_its_field(option):
    ((name, value),) = option.items()
    column = columns.embedding_column(identity(), 3, **option)
    shared = columns.shared_embedding_columns([identity()], 3, **option)
    for each in (column, *shared):
        assert getattr(each, name) == value
    if name == "use_safe_embedding_lookup":
        return
    inherited = layers.embedding_column(identity(), 3, **option)
    assert getattr(inherited, name) == value


def test_the_options_of_an_input_layer_count():
    column = layers.embedding_column(identity(), 3)
    with v1.variable_scope("outer"):
        layers.input_from_feature_columns(
            {"id": ids()}, [column], weight_collections=["wide"], trainable=False, scope="inner"
        )
    (made,) = v1.get_collection("wide")
    assert made.name == "outer/inner/input_layer/id_embedding/embedding_weights:0"
    assert not v1.trainable_variables()


def test_the_options_of_a_layer_of_sequences_count():
    history = v1.feature_column.sequence_categorical_column_with_identity("id", 8)
    column = columns.embedding_column(history, 3)
    contrib_columns.sequence_input_layer(
        {"id": ids()}, [column], weight_collections=["wide"], trainable=False, scope="history"
    )
    (made,) = v1.get_collection("wide")
    assert made.name.startswith("history/")
    assert not v1.trainable_variables()


def test_the_options_of_contribs_columns_count():
    hashed = layers.sparse_column_with_hash_bucket("word", 8, dtype=tf.int64)
    assert (hashed.hash_bucket_size, hashed.dtype) == (8, tf.int64)
    weighted = layers.weighted_sparse_column(identity(), "weight", dtype=tf.float64)
    assert (weighted.weight_feature_key, weighted.dtype) == ("weight", tf.float64)
    age = layers.real_valued_column("age", default_value=2.0, dtype=tf.float64)
    assert (age.default_value, age.dtype) == ((2.0,), tf.float64)


@pytest.mark.parametrize(
    "option",
    [{}, {"partition_strategy": "div"}, {"max_norm": 1.0}, {"validate_indices": False}],
    ids=str,
)
def test_the_options_of_a_plain_lookup_count(option):
    parts = [tf.constant([[3.0, 4.0], [0.1, 0.2]]), tf.constant([[1.0, 1.0], [6.0, 8.0]])]
    found = embedding_lookup(parts, [0, 1, 2, 3], name="rows", **option)
    assert found.op.name.startswith("rows")
    with v1.Session() as session:
        got, wanted = session.run([found, v1.nn.embedding_lookup(parts, [0, 1, 2, 3], **option)])
    np.testing.assert_array_equal(got, wanted)


def test_an_embedding_variable_joins_collections():
    table = variable.get_embedding_variable("table", 4, collections=["tables"])
    assert v1.get_collection("tables") == [table]


@pytest.mark.parametrize(
    "look_up", [fused_embedding_lookup_sparse, fused_embedding_lookup_sparse_v2]
)
def test_a_fused_lookup_has_the_name_it_is_given(look_up):
    found = look_up(tf.ones([8, 2]), ids(), combiner="sum", name="clicks")
    assert found.op.name.startswith("clicks")
    safe = fused_safe_embedding_lookup_sparse(tf.ones([8, 2]), ids(), name="safe")
    assert safe.op.name.startswith("safe")


def test_each_op_of_the_document_has_one_of_workbench():
    tables = [v1.get_variable(name, [4, 2]) for name in ("first", "second")]
    for version in ("v1", "v2"):
        # With a norm, rows are gathered first, as from a table on another device.
        found = fused_safe_embedding_lookup_sparse(
            tables, ids(), max_norm=1.0, fusion_version=version
        )
        tf.gradients(found, tables)
    beside = v1.get_variable("beside", [4, 2], use_resource=False)
    tf.gradients(fused_safe_embedding_lookup_sparse(beside, ids(), fusion_version="v1"), beside)
    built = {op.type for op in v1.get_default_graph().get_operations()}
    named = {
        word
        for row in TABLE
        if row.section == "Ops"
        for word in row.works.replace("`", " ").replace(",", " ").split()
        if word.startswith("Workbench")
    }
    assert len(named) == 10
    assert named <= built


def test_the_variables_of_gpu_threads_are_stocks_own(tmp_path):
    script = """
    import workbench.compat.v1 as tf
    ids = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
    found = tf.nn.fused_embedding_lookup_sparse_v2(tf.ones([4, 2]), ids, combiner="sum")
    with tf.Session() as session:
        print(session.run(found).tolist())
    """
    variables = {"TF_GPU_THREAD_MODE": "gpu_private", "TF_GPU_THREAD_COUNT": "1"}
    done = run_script(script, tmp_path, **variables)
    assert done.stdout.splitlines() == ["[[1.0, 1.0]]"], done.stderr[-2000:]

"""Every fused lookup has a stock form that gives its results, of every dtype and kind of ids."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.stock_python import StockError, stock_outputs
from workbench.ops import fused_safe_embedding_lookup_sparse, grouped_embedding_lookup

v1 = tf.compat.v1
ROWS, WIDE, TABLE = 10_000, 5, 1000
DTYPES = [tf.float32, tf.float16, tf.bfloat16]


def drawn_ids() -> np.ndarray:
    random = np.random.default_rng(0)
    ids = random.integers(0, TABLE, (ROWS, WIDE))
    ids[random.random(ids.shape) < 0.3] = -1
    ids[::50] = -1
    return ids.astype(np.int64)


def sparse(ids: tf.Tensor, *, with_padding: bool = True) -> tf.SparseTensor:
    """Of padded ids; with padding ids below 0 stay, for the lookup to drop."""
    where = tf.where(ids > -10 if with_padding else ids >= 0)
    return tf.SparseTensor(where, tf.gather_nd(ids, where), tf.shape(ids, out_type=tf.int64))


def table_of(dtype: tf.DType, resource: bool, name: str = "table", rows: int = TABLE):
    start = v1.random_normal_initializer(seed=4)
    return v1.get_variable(name, [rows, 16], dtype, start, use_resource=resource)


def same_bits(found: np.ndarray, expected: np.ndarray, name: str) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape, name
    assert found.tobytes() == expected.tobytes(), name


def exported(inputs: dict, outputs: dict, given: dict, folder, same=same_bits) -> wb.Export:
    """Exports, and compares what stock TensorFlow computes."""
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        result = wb.export(session, folder / "out", inputs=inputs, outputs=outputs)
        expected = session.run(outputs, {inputs[name]: value for name, value in given.items()})
    found = stock_outputs(folder / "out", given, folder)
    for name, value in expected.items():
        same(found[name], value, name)
    return result


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_lookups_of_one_table(dtype, resource, tmp_path):
    table = table_of(dtype, resource)
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    narrow = tf.cast(ids, tf.int32)
    outputs = {}
    for version in ("v1", "v2"):
        for combiner, default in (("mean", None), ("sqrtn", 3), ("sum", 0)):
            outputs[f"{version}_{combiner}"] = fused_safe_embedding_lookup_sparse(
                table, sparse(narrow), None, combiner, default, fusion_version=version
            )
    several = [sparse(ids), sparse(ids, with_padding=False), ids[:, 0], tf.nn.relu(ids)]
    several.append(tf.RaggedTensor.from_tensor(ids, padding=-1))
    found = grouped_embedding_lookup(
        [table] * 5,
        several,
        None,
        ["mean", "sqrtn", "sum", "mean", "sum"],
        None,
        [5, None, 2, None, 1],
    )
    outputs |= {f"grouped_{i}": each for i, each in enumerate(found)}
    outputs["beside"] = grouped_embedding_lookup(
        [table] * 2, several[:2], None, "mean", concatenate=True
    )
    result = exported({"ids": ids}, outputs, {"ids": drawn_ids()}, tmp_path)
    assert result.replaced[f"Workbench{'Resource' * resource}GroupedLookUp"] == 2
    assert result.replaced[f"Workbench{'Resource' * resource}LocalLookUp"] == 6


@pytest.mark.parametrize("strategy", ["div", "mod"])
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_lookups_of_several_shards(version, strategy, tmp_path):
    shards = [
        table_of(tf.float32, True, f"part_{i}", rows) for i, rows in enumerate((334, 333, 333))
    ]
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    vectors = fused_safe_embedding_lookup_sparse(
        shards, sparse(ids), fusion_version=version, partition_strategy=strategy
    )
    exported({"ids": ids}, {"vectors": vectors}, {"ids": drawn_ids()}, tmp_path)


def test_ids_of_a_higher_rank(tmp_path):
    table = table_of(tf.float32, True)
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    deep = sparse(tf.reshape(ids, [-1, 2, WIDE]))
    outputs = {
        "v1": fused_safe_embedding_lookup_sparse(table, deep, fusion_version="v1"),
        "grouped": grouped_embedding_lookup([table], [deep])[0],
    }
    exported({"ids": ids}, outputs, {"ids": drawn_ids()}, tmp_path)


def test_weights_and_longest_lengths_agree_to_rounding(tmp_path):
    table = table_of(tf.float32, True)
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    weights = v1.placeholder(tf.float32, [None, WIDE], "weights")
    each = sparse(ids)
    beside = tf.SparseTensor(each.indices, tf.gather_nd(weights, each.indices), each.dense_shape)
    outputs = {}
    for version in ("v1", "v2"):
        for combiner in ("mean", "sqrtn", "sum"):
            outputs[f"{version}_{combiner}"] = fused_safe_embedding_lookup_sparse(
                table, each, beside, combiner, 4, max_norm=2.0, fusion_version=version
            )
    found = grouped_embedding_lookup(
        [table] * 2, [each] * 2, [beside, None], ["mean", "sum"], [None, 3.0]
    )
    outputs |= {f"grouped_{i}": each for i, each in enumerate(found)}
    random = np.random.default_rng(5)
    given = {"ids": drawn_ids(), "weights": random.normal(1, 1, (ROWS, WIDE)).astype(np.float32)}

    def close(found, expected, name):
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5, err_msg=name)

    exported({"ids": ids, "weights": weights}, outputs, given, tmp_path, same=close)


def test_a_lookup_of_no_ids_at_all(tmp_path):
    table = table_of(tf.float32, True)
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    outputs = {
        "v2": fused_safe_embedding_lookup_sparse(table, sparse(ids), fusion_version="v2"),
        "grouped": grouped_embedding_lookup([table], [sparse(ids)])[0],
    }
    exported({"ids": ids}, outputs, {"ids": np.full([7, WIDE], -1)}, tmp_path)


def test_an_id_beyond_the_table_is_an_error_of_stock_tensorflow(tmp_path):
    table = table_of(tf.float32, True)
    ids = v1.placeholder(tf.int64, [None, WIDE], "ids")
    vectors = fused_safe_embedding_lookup_sparse(table, sparse(ids), fusion_version="v2")
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        wb.export(session, tmp_path / "out", inputs=[ids], outputs={"v": vectors})
    with pytest.raises(StockError, match="1000 is not in"):
        stock_outputs(tmp_path / "out", {"ids": np.full([1, WIDE], 1000)}, tmp_path)

"""What a fused column keeps of the stock one, and what is refused."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.builders.stock_columns import (
    features,
    identity,
    sequence_layer,
    stock,
    v1,
)
from workbench.compat.contrib.feature_column import sequence_input_layer
from workbench.errors import OptionError
from workbench.ops.feature_column import columns as wb
from workbench.ops.feature_column.embedding_columns import EmbeddingColumn
from workbench.ops.lookup.fusion import (
    fused_embeddings,
    safe_embedding_lookup_sparse,
)


def test_a_column_is_stocks_with_one_more_field():
    column = wb.embedding_column(identity(), 3, do_fusion="v1")
    assert isinstance(column, type(stock.embedding_column(identity(), 3)))
    assert column.name == "id_embedding"
    assert stock.make_parse_example_spec([column]) == {"id": tf.io.VarLenFeature(tf.int64)}
    changed = column._replace(dimension=4)
    assert (changed.dimension, changed.do_fusion) == (4, "v1")
    (shared,) = wb.shared_embedding_columns([identity()], 3, do_fusion="v2")
    assert shared._replace(combiner="sum").do_fusion == "v2"
    config = wb.embedding_column(
        identity(), 3, initializer=v1.ones_initializer(), do_fusion="v1"
    ).get_config()
    again = EmbeddingColumn.from_config(config)
    assert (again.do_fusion, again.categorical_column) == ("v1", identity())


@pytest.mark.parametrize("wrong", ["v3", "V1", 1, 0, b"v1"])
def test_unknown_versions_are_refused_by_name(wrong):
    expected = (
        rf"do_fusion is {wrong!r}; expected 'v1', 'v2', 'grouped', True .* None \(= the context\)"
    )
    for make in (
        lambda: wb.embedding_column(identity(), 3, do_fusion=wrong),
        lambda: wb.shared_embedding_columns([identity()], 3, do_fusion=wrong),
        lambda: safe_embedding_lookup_sparse(None, None, do_fusion=wrong),
    ):
        with pytest.raises(OptionError, match=expected):
            make()


@pytest.mark.parametrize("wrong", ["v3", True, False, 2])
def test_a_context_of_an_unknown_version_is_refused(wrong):
    expected = rf"fused_embeddings\(version\) is {wrong!r}; expected 'v1', 'v2', 'grouped', or None"
    with pytest.raises(OptionError, match=expected), fused_embeddings(wrong):
        pass


def test_stocks_own_checks_remain():
    with pytest.raises(ValueError, match="Invalid dimension 0"):
        wb.embedding_column(identity(), 0, do_fusion="v2")
    with pytest.raises(ValueError, match="initializer must be callable"):
        wb.embedding_column(identity(), 3, initializer=1.0)
    with pytest.raises(ValueError, match="same number of buckets"):
        other = stock.categorical_column_with_identity("other", 9)
        wb.shared_embedding_columns([identity(), other], 3, do_fusion="v2")


def test_a_collection_that_holds_another_variable_is_refused():
    columns = wb.shared_embedding_columns(
        [identity()], 3, shared_embedding_collection_name="mine", do_fusion="v2"
    )
    v1.add_to_collection("mine", v1.get_variable("other", [2, 2]))
    message = (
        r"column 'id_shared_embedding' .* shape \[5, 3\] .* 'mine', which holds 1 with \[2, 2\]"
    )
    with pytest.raises(OptionError, match=message):
        stock.input_layer(features(), columns)


def test_sequences_want_sequence_columns():
    with pytest.raises(OptionError, match="'age' of type NumericColumn; expected embedding_column"):
        sequence_layer([stock.numeric_column("age")])


def test_sequences_stand_in_the_order_of_their_names():
    columns = [
        wb.embedding_column(
            stock.sequence_categorical_column_with_identity(key, 5),
            1,
            initializer=v1.constant_initializer(value),
            do_fusion="v2",
        )
        for key, value in (("other", 2.0), ("id", 1.0))
    ]
    fed = features()
    fed["other"] = fed["id"]
    output, lengths = sequence_input_layer(fed, columns)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        values, counted = session.run([output, lengths])
    assert values[0].tolist() == [[1, 2]] * 3
    assert counted.tolist() == [3, 0, 1, 2]


def test_lengths_of_sequences_must_agree():
    keys = ("id", "other")
    fed = {key: v1.sparse_placeholder(tf.int64, [None, None]) for key in keys}
    made = [stock.sequence_categorical_column_with_identity(key, 5) for key in keys]
    columns = [wb.embedding_column(each, 2, do_fusion="v2") for each in made]
    output, lengths = sequence_input_layer(fed, columns)

    def feed(rows):
        indices = [[r, c] for r, row in enumerate(rows) for c in range(len(row))]
        flat = [value for row in rows for value in row]
        return v1.SparseTensorValue(indices, flat, [len(rows), max(map(len, rows))])

    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        alike = {fed["id"]: feed([[1, 2], [3]]), fed["other"]: feed([[4, 4], [0]])}
        assert session.run(lengths, alike).tolist() == [2, 1]
        assert session.run(output, alike).shape == (2, 2, 4)
        for other in ([[4], [0, 0]], [[4, 4, 4], [0]]):
            apart = {**alike, fed["other"]: feed(other)}
            for fetch in (output, lengths):
                with pytest.raises(
                    tf.errors.InvalidArgumentError, match="lengths of the columns differ"
                ):
                    session.run(fetch, apart)

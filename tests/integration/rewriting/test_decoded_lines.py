"""Lines of text in a finished graph that a kernel of Workbench's makes columns of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.examples import few
from tests.builders.fused_parts import names_of
from tests.builders.intra_op_threads import require_same_bits
from workbench import _native

v1 = tf.compat.v1
TYPES = (tf.float32, tf.float64, tf.int32, tf.int64, tf.string)
# Fields that are numbers, nearly so, or anything.
FIELDS = st.one_of(
    st.sampled_from(("", "NA", "0", "-0", "7", "007", " 8 ", "+3", "1.", ".5", "1e3", "-2.5E-3")),
    st.sampled_from(("nan", "inf", "-inf", "0x10", "1_000", "1,5", "--1", "1.2.3", "3.0")),
    st.integers(-(2**65), 2**65).map(str),
    st.floats(width=32).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str),
    st.text(alphabet="ab\",\t\n\r 'é", max_size=30),
)


def decoded(own: bool, lines: Any, defaults: list[Any], **options: Any) -> Any:
    """The columns, or what is wrong with the lines."""
    make = _native.library().workbench_decode_csv if own else tf.raw_ops.DecodeCSV
    with context.eager_mode():
        try:
            return make(records=tf.constant(lines, tf.string), record_defaults=defaults, **options)
        except tf.errors.InvalidArgumentError as error:
            return error.message.split(" [Op:")[0].rpartition("}} ")[2]


def require_same(lines: Any, defaults: list[Any], **options: Any) -> Any:
    expected, found = (decoded(own, lines, defaults, **options) for own in (False, True))
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return found
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        # To the bit: NaN and -0 too.
        assert one.numpy().tobytes() == other.numpy().tobytes() or one.dtype == tf.string
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    return found


def default_of(dtype: tf.DType, required: bool) -> tf.Tensor:
    with context.eager_mode():
        if required:
            return tf.zeros([0], dtype)
        return tf.constant(["none"] if dtype == tf.string else [3], dtype)


@few(150, 3000)
@given(
    types=st.lists(st.sampled_from(TYPES), min_size=1, max_size=4),
    data=st.data(),
    delimiter=st.sampled_from((",", "\t", ";", "a", '"', "\n")),
    quotes=st.booleans(),
    na_value=st.sampled_from(("", "NA", "0")),
)
def test_gives_what_the_stock_op_does(
    types: list[tf.DType], data: Any, delimiter: str, quotes: bool, na_value: str
) -> None:
    count = len(types)
    line = st.lists(FIELDS, min_size=count, max_size=count).map(delimiter.join)
    quoted = st.lists(FIELDS.map(quote), min_size=count, max_size=count).map(delimiter.join)
    anything = st.text(alphabet='a1",\t\n ;', max_size=12)
    lines = data.draw(st.lists(st.one_of(line, line, quoted, anything), max_size=4))
    defaults = [default_of(each, data.draw(st.booleans())) for each in types]
    options = {"field_delim": delimiter, "use_quote_delim": quotes, "na_value": na_value}
    require_same(np.array(lines, object), defaults, **options)


def quote(field: str) -> str:
    return '"' + field.replace('"', '""') + '"'


@few(300, 5000)
@given(field=st.one_of(st.floats(width=32).map(str), st.decimals(-(10**12), 10**12).map(str)))
def test_numbers_are_the_same_to_the_bit(field: str) -> None:
    for dtype in TYPES:
        require_same([field], [default_of(dtype, False)])


def test_of_many_lines_the_first_wrong_one_is_told() -> None:
    lines = ["1,a"] * 5000
    for place in (4000, 2500, 4999):
        lines[place] = "1,a,b" if place == 4000 else "x,a"
    defaults = [default_of(tf.float32, True), default_of(tf.string, False)]
    assert require_same(lines, defaults) == "Field 0 in record 2500 is not a valid float: x"


def test_lines_keep_their_shape() -> None:
    lines = [["1,a", "2,b"], ["3,", ",d"]]
    found = require_same(lines, [default_of(tf.int64, False), default_of(tf.string, False)])
    assert found[0].shape == (2, 2)


def test_what_is_wrong_with_defaults_is_told() -> None:
    with context.eager_mode():
        two, square = tf.constant([1.0, 2.0]), tf.constant([[1.0]])
    for default in (two, square):
        assert isinstance(decoded(True, ["1"], [default]), str)


def many_columns() -> list[np.ndarray]:
    random = np.random.default_rng(1)
    lines = [",".join(map(str, row)) for row in random.integers(10**6, size=(3000, 30))]
    with tf.Graph().as_default(), v1.Session() as session:
        given_ = v1.placeholder(tf.string, [None])
        columns = _native.library().workbench_decode_csv(
            records=given_, record_defaults=[tf.zeros([1])] * 20 + [tf.constant([""])] * 10
        )
        found: list[np.ndarray] = session.run(list(columns), {given_: lines})
    return found


def test_results_do_not_depend_on_the_threads() -> None:
    require_same_bits(many_columns)


class TestThePlan:
    def test_has_another_kernel_do_lines(self) -> None:
        with tf.Graph().as_default() as graph:
            lines = v1.placeholder(tf.string, [None])
            columns = tf.io.decode_csv(lines, [[0.0], [""]], name="columns")
        plan = wb.plan_fusion(graph)
        assert names_of(plan, "line decoder") == ("columns",) and plan.count == 1
        assert plan.describe() == "lines decoded by Workbench's kernel\n  columns"
        for config in (None, wb.apply(plan)):
            with v1.Session(graph=graph, config=config) as session:
                found = session.run(columns, {lines: ["1.5,a", ",b"]})
            assert found[0].tolist() == [1.5, 0.0] and found[1].tolist() == [b"a", b"b"]

    def test_keeps_what_it_waits_for(self) -> None:
        with tf.Graph().as_default() as graph:
            count = v1.get_variable("count", initializer=0.0)
            lines = v1.placeholder(tf.string, [None])
            with tf.control_dependencies([v1.assign_add(count, 1.0).op]):
                (column,) = tf.io.decode_csv(lines, [[0.0]])
            begin = v1.global_variables_initializer()
        with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
            session.run(begin)
            session.run(column, {lines: ["1"]})
            assert session.run(count) == 1.0

    @pytest.mark.parametrize("device", ["", "/device:GPU:0"])
    def test_leaves_chosen_columns_and_those_of_gpus(self, device: str) -> None:
        with tf.Graph().as_default() as graph, tf.device(device):
            lines = v1.placeholder(tf.string, [None])
            tf.io.decode_csv(lines, [[0.0]], select_cols=None if device else [1])
        assert not wb.plan_fusion(graph).count

    def test_of_a_function(self) -> None:
        with context.eager_mode():

            @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
            def parse(lines: tf.Tensor) -> Any:
                return tf.io.decode_csv(lines, [[0.0], [""]])

            concrete = parse.get_concrete_function()
            fused = wb.fuse_function(concrete)
            lines = tf.constant(["1,a", "2,b"])
            for one, other in zip(fused(lines), concrete(lines), strict=True):
                np.testing.assert_array_equal(one, other)
            assert "WorkbenchDecodeCsv" in {n.op for n in fused.graph.as_graph_def().node}

"""What EmbeddingVariables say: wrong arguments, uses and tensors, each by name."""

from __future__ import annotations

import concurrent.futures
import logging

import numpy as np
import pytest
import tensorflow as tf

from workbench import _native
from workbench.errors import OptionError, UnsupportedError
from workbench.ops.embedding_variable import optimizers as optimizers
from workbench.ops.embedding_variable.variable import (
    CBFFilter,
    CounterFilter,
    EmbeddingVariable,
    EmbeddingVariableOption,
    GlobalStepEvict,
    InitializerOption,
    L2WeightEvict,
    PartitionedEmbeddingVariable,
    StorageOption,
    get_embedding_variable,
    string_keys,
)

v1 = tf.compat.v1

DIM = 6


def made(name="emb", dim=DIM, **options):
    return get_embedding_variable(name, dim, **options)


def parts(count):
    return v1.fixed_size_partitioner(count)


def test_a_scope_gives_it_again():
    with v1.variable_scope("input", partitioner=parts(3)):
        first = made()
    assert type(first) is EmbeddingVariable and first.name == "input/emb:0"
    with v1.variable_scope("input", reuse=True):
        assert made() is first
        with pytest.raises(OptionError, match=r"'input/emb' was made with .*\(6, None.*not with"):
            made(dim=7)
        with pytest.raises(OptionError, match="'input/other' is not there to be reused; make it"):
            made("other")
    with v1.variable_scope("input", reuse=v1.AUTO_REUSE):
        assert made() is first
        split = made("split", partitioner=parts(2))
        assert isinstance(split, PartitionedEmbeddingVariable) and len(split) == 2
        assert made("split", partitioner=parts(2)) is split
    with (
        v1.variable_scope("input"),
        pytest.raises(OptionError, match="'input/emb' is there already; give another name"),
    ):
        made()
    names = [v.op.name for v in v1.trainable_variables()]
    assert names == ["input/emb", "input/split/part_0", "input/split/part_1"]
    assert "input/emb" not in [v.op.name for v in v1.global_variables()]


def test_strings_are_hashed_to_keys():
    with v1.Session() as session:
        keys = session.run(string_keys([["a", "b"], ["", "a"]]))
    assert keys.dtype == np.int64 and keys.shape == (2, 2) and np.all(keys >= 0)
    assert keys[0, 0] == keys[1, 1] and len(set(keys.ravel())) == 3
    with pytest.raises(OptionError, match="string_keys was given int32; expected strings"):
        string_keys([1])


@pytest.mark.parametrize("rule", ["Momentum", "Adagrad", "Adam", "Ftrl", "RMSProp"])
def test_other_optimizers_are_refused_by_name(rule):
    loss = tf.reduce_sum(made().sparse_read([1]))
    given = {"momentum": 0.9} if rule == "Momentum" else {}
    with pytest.raises(UnsupportedError, match=r"'emb' has no dense value.*AdagradOptimizer, Adam"):
        getattr(v1.train, f"{rule}Optimizer")(0.1, **given).minimize(loss)


@pytest.mark.parametrize(
    "use",
    [
        tf.convert_to_tensor,
        tf.nn.l2_loss,
        lambda table: table + 1.0,
        lambda table: table.assign(0.0),
        lambda table: table.read_value(),
        lambda table: v1.train.Saver([table]),
        lambda table: list(table),
    ],
)
def test_what_needs_a_dense_value_is_refused(use):
    with pytest.raises(UnsupportedError, match=r"'emb' has no dense value. Read rows with sparse"):
        use(made())


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"regularizer": len}, UnsupportedError, "regularizer = .* add its loss of the rows"),
        ({"constraint": len}, UnsupportedError, "constraint = .* max_norm"),
        ({"caching_device": "/cpu:0"}, UnsupportedError, "caching_device = '/cpu:0' is not"),
        ({"custom_getter": len}, UnsupportedError, "custom_getter = .* leave it out"),
        ({"init_data_source": "f"}, UnsupportedError, "init_data_source = 'f' .*Saver"),
        ({"key_dtype": tf.string}, UnsupportedError, "key_dtype is string; .* string_keys"),
        ({"value_dtype": tf.float64}, UnsupportedError, "value_dtype is float64; rows are float32"),
        ({"dim": 0}, OptionError, "embedding_dim is 0; expected an int from 1 to 65536"),
        ({"dim": 2**62}, OptionError, "embedding_dim is 4611686018427387904; expected an int from"),
        ({"initializer": "ones"}, OptionError, "initializer is 'ones'; expected an initializer"),
        ({"ev_option": 3}, OptionError, "ev_option is 3; expected an EmbeddingVariableOption"),
        ({"partitioner": lambda **_: [1, 2]}, OptionError, r"answers \[1, 2\] for any number"),
        ({"partitioner": parts(1001)}, OptionError, r"answers \[1001, 1\] .* n from 1 to 1000"),
    ],
)
def test_wrong_arguments_are_refused(given, kind, message):
    with pytest.raises(kind, match=f"EmbeddingVariable 'emb'.*{message}"):
        made(**given)


def test_it_needs_a_sessions_graph():
    # Another thread has no default graph: it executes eagerly.
    with (
        concurrent.futures.ThreadPoolExecutor(1) as pool,
        pytest.raises(UnsupportedError, match="'emb' needs a session's graph: build the model in"),
    ):
        pool.submit(made).result()


def test_keys_of_another_dtype_are_refused():
    with pytest.raises(OptionError, match="'emb' have dtype string; .*; hash strings with"):
        made().sparse_read(["a"])
    with pytest.raises(OptionError, match="'other' have dtype float32; expected int64 or int32$"):
        made("other", partitioner=parts(2)).sparse_read([0.5])


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: CBFFilter(3), OptionError, "false_positive_probability is -1.0; expected a num"),
        (lambda: CBFFilter(3, 0, 0.1), OptionError, "max_element_size is 0; expected the number"),
        (lambda: CBFFilter(3, 2**60, 0.1), OptionError, "for at most 137438953472 counters"),
        (lambda: CBFFilter(-3, 9, 0.1), OptionError, "CBFFilter: filter_freq is -3; expected 0"),
        (
            lambda: CBFFilter(300, 9, 0.1, tf.uint8),
            OptionError,
            "counter_type is tf.uint8; expected one that counts to filter_freq = 300: uint16, uint",
        ),
        (lambda: CounterFilter(2, 10), OptionError, "max_waiting_keys is 10; expected 1024 to"),
        (lambda: L2WeightEvict(0.1), UnsupportedError, r"L2WeightEvict\(0.1\) .*GlobalStepEvict"),
        (
            lambda: StorageOption("dram"),
            UnsupportedError,
            r"StorageOption\('dram'\) .*partitioner",
        ),
        (lambda: CounterFilter(-1), OptionError, "filter_freq is -1; expected 0"),
        (lambda: CounterFilter(2**32), OptionError, r"4294967296; expected 0 .* to 4294967295"),
        (lambda: CounterFilter(1.5), OptionError, "CounterFilter: filter_freq is 1.5; expected an"),
        (lambda: GlobalStepEvict(0), OptionError, "steps_to_live is 0; expected 1 or more"),
        (lambda: InitializerOption(default_value_dim=2.0), OptionError, "dim is 2.0; expected an"),
        (
            lambda: EmbeddingVariableOption(filter_option=3),
            OptionError,
            "filter_option is 3; expected a CounterFilter, a CBFFilter or None",
        ),
        (
            lambda: EmbeddingVariableOption(storage_option="ssd"),
            UnsupportedError,
            "storage_option = 'ssd' is not implemented: rows are kept in the host's memory",
        ),
        (lambda: EmbeddingVariableOption(ckpt="a"), UnsupportedError, "ckpt = 'a' .*Saver"),
    ],
)
def test_wrong_options_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


def test_a_default_value_dim_that_is_not_above_0_is_4096(caplog):
    with caplog.at_level(logging.WARNING, "workbench"):
        assert InitializerOption(default_value_dim=0).default_value_dim == 4096
    assert [record.getMessage() for record in caplog.records] == [
        "InitializerOption: default_value_dim is 0; taking 4096, as it must be above 0"
    ]


def contents(rows=2, dim=DIM, **given):
    """What `replace` takes, all empty but for keys and values."""
    one = {"keys": np.arange(rows), "values": np.zeros((rows, dim), np.float32)}
    empty = dict.fromkeys(("freqs", "versions", "filtered_keys", "filtered_freqs"), ())
    columns = {**one, **empty, **given}
    return [
        tf.constant(column, tf.float32 if name == "values" else tf.int64, np.shape(column))
        for name, column in columns.items()
    ]


def gather(table, keys, defaults, **given):
    return _native.library().workbench_embedding_gather(
        table.handle, tf.constant(keys, tf.int64), defaults, **{"counts": [], "step": [], **given}
    )


def unknown(value):
    """A tensor whose static shape nobody knows."""
    return v1.placeholder_with_default(tf.constant(value, tf.float32), None)


def apply(table, rate, grads, keys):
    return _native.library().workbench_embedding_apply_gradient_descent(
        table.handle, unknown(rate), unknown(grads), keys
    )


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda table: table.replace(contents(dim=3), (), part=0, parts=1),
            r"'emb': shape of the checkpoint's values is \[2,3\]; expected \[2,6\]",
        ),
        (
            lambda table: table.replace(contents(freqs=[1]), (), part=0, parts=1),
            r"shape of the checkpoint's freqs is \[1\]; expected \[2\]",
        ),
        (
            lambda table: table.replace(contents(filtered_keys=[1]), (), part=0, parts=1),
            r"shape of the checkpoint's filtered freqs is \[0\]; expected \[1\]",
        ),
        (
            lambda table: table.replace(contents(keys=[8, 8]), (), part=0, parts=1),
            "the checkpoint of EmbeddingVariable 'emb' is damaged: key 8 stands at two places of 2",
        ),
        (
            lambda table: gather(table, [1], unknown(np.zeros((4, 3)))),
            r"'emb': shape of default_rows is \[4,3\]; expected \[n > 0, 6\]",
        ),
        (
            lambda table: gather(table, [1], unknown(np.zeros((0, DIM)))),
            r"default_rows is \[0,6\]; expected",
        ),
        (
            lambda table: table.sparse_read([1, 2], counts=unknown([1])),
            r"'emb': shape of counts is \[1\]; expected \[2\]",
        ),
        (
            lambda table: apply(table, 0.1, np.zeros((2, 3)), [1, 2]),
            r"'emb': shape of grads is \[2,3\]; expected \[2,6\]",
        ),
        (
            lambda table: apply(table, [0.1], np.zeros((2, DIM)), [1, 2]),
            r"'emb': shape of an optimizer's number is \[1\]; expected \[\]",
        ),
        (
            lambda table: _native.library().workbench_embedding_sizes(table.default_rows.handle),
            "was given 'emb/default_rows'; expected the handle of an EmbeddingVariable: ",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_refused(build, message):
    table = made()
    fetched = build(table)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(fetched)


def test_a_slot_has_one_initial_value():
    table = made()
    loss = tf.reduce_sum(table.sparse_read([1]))
    first = optimizers.AdagradOptimizer(0.1, 0.5).minimize(loss)
    second = _native.library().workbench_embedding_apply_adagrad(
        table.handle, 0.1, tf.zeros([1, DIM]), [1], slot_names=["Adagrad"], slot_initials=[0.25]
    )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        session.run(first)
        message = r"'emb': slot 'Adagrad' starts at 0.50+ in the rows .* start at 0.250+; give"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            session.run(second)


def test_static_shapes_that_do_not_fit_are_refused():
    table = made()
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 2 and 3"):
        table.scatter_sub(tf.IndexedSlices(tf.zeros([2, DIM]), [1, 2, 3]))
    with pytest.raises(ValueError, match="Shapes must be equal rank|must be equal"):
        table.sparse_read([1, 2], counts=[1])


@pytest.fixture
def control_flow(request):
    """Branches and loops of TensorFlow's first or second kind."""
    was = v1.control_flow_v2_enabled()
    (v1.enable_control_flow_v2 if request.param else v1.disable_control_flow_v2)()
    yield request.param
    (v1.enable_control_flow_v2 if was else v1.disable_control_flow_v2)()


@pytest.mark.parametrize("control_flow", [False, True], indirect=True)
def test_rows_read_in_a_branch_are_not_trained(control_flow):
    table = made()
    rows = tf.cond(
        v1.placeholder_with_default(True, []),
        lambda: table.sparse_read([1]),
        lambda: tf.zeros([1, DIM]),
    )
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(rows).shape == (1, DIM)
    with pytest.raises(UnsupportedError, match=r"reads rows .* in a tf.cond.*sparse_read before"):
        optimizers.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows))


@pytest.mark.parametrize("control_flow", [False, True], indirect=True)
def test_rows_read_in_a_loop(control_flow):
    table = made(initializer=v1.ones_initializer())

    def add(i, total):
        return i + 1, total + tf.reduce_sum(table.sparse_read([i]))

    _, total = tf.while_loop(lambda i, _: i < 3, add, [tf.constant(0), tf.constant(0.0)])
    if control_flow:
        with pytest.raises(UnsupportedError, match="or in a loop or function of its own graph"):
            tf.gradients(total, [table.handle])
        return
    step = optimizers.GradientDescentOptimizer(0.5).minimize(total)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        assert session.run(total) == 3 * DIM
        session.run(step)
        assert session.run(total) == 1.5 * DIM

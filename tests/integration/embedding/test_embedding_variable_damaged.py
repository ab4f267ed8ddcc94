"""The ops of EmbeddingVariables and of row updates are handed anything: an error, never a crash."""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import context

from workbench import _native

# More of them under AddressSanitizer: make native-fuzz.
FUZZED = settings(max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "40")), deadline=None)
HUGE = 2**62

_numbers = itertools.count()


@pytest.fixture(autouse=True)
def eagerly():
    with context.eager_mode():
        yield


def made(dim: int = 2, **given: Any) -> tf.Tensor:
    library = _native.library()
    return library.workbench_embedding_variable(
        shared_name=f"damaged_{next(_numbers)}", dim=dim, **given
    )


def keys(*values: int) -> tf.Tensor:
    return tf.constant(values, tf.int64)


def replace(handle: tf.Tensor, columns: list[Any], **given: Any) -> None:
    slots = {"slots": [], "slot_names": [], "slot_initials": [], **given}
    _native.library().workbench_embedding_import(handle, *columns, **slots)


def exported(handle: tf.Tensor, **given: Any) -> Any:
    slots = {"num_slots": 0, "slot_names": [], "slot_initials": [], **given}
    return _native.library().workbench_embedding_export(handle, [], dim=2, **slots)


def update_rows(table: tf.Tensor, width: int) -> None:
    _native.library().workbench_resource_rows_apply(
        *(tf.Variable(table).handle, [], [0.1]),
        *(tf.zeros([0, width]), keys(1, 2)),
        rule="gradient_descent",
    )


def pre_look_up(table_rows: list[int]) -> Any:
    return _native.library().workbench_pre_look_up(
        ids=keys(5),
        indices=[[0, 0]],
        dense_shape=[1, 1],
        weights=tf.zeros([0]),
        table_rows=keys(*table_rows),
        num_partitions=len(table_rows),
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: made(HUGE), f"dim is {HUGE}; expected at most 65536"),
        (lambda: made(filter_freq=HUGE), f"filter_freq is {HUGE}; expected at most 4294967295"),
        (
            lambda: exported(made(), slot_names=["a"], slot_initials=[0.5]),
            "slot_names has 1 entries; expected num_slots = 0",
        ),
        (
            lambda: replace(
                made(),
                [keys(1), tf.zeros([1, 2]), *[keys()] * 4],
                slot_names=["a"],
                slot_initials=[0.5],
            ),
            "slot_names has 1 entries; expected num_slots = 0",
        ),
        (
            lambda: update_rows(tf.zeros([0, HUGE]), HUGE),
            rf"rows \[2\] of a table \[0,{HUGE}\]; expected",
        ),
        (lambda: update_rows(tf.zeros([3, 2], tf.float64), 2), "the table is of type double"),
        (lambda: pre_look_up([HUGE] * 2), "no more rows together than int64 counts"),
        (
            lambda: _native.library().workbench_post_look_up_grad(
                tf.ones([2, 2]),
                [keys(0, 0), keys()],
                [[0, 0], [0, 0]],
                [0, 1, 2],
                tf.zeros([0]),
                shards=[],
                combiner="sum",
            ),
            r"permutation\[1\] is \[0, 0\], which another id has; expected each vector once",
        ),
    ],
)
def test_what_would_end_the_process_is_refused(call: Any, message: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


def test_rows_that_int64_just_counts() -> None:
    first, second = pre_look_up([2**63 - 6, 5]).partitioned_values
    assert (first.numpy().tolist(), second.numpy().tolist()) == ([5], [])


def test_what_is_no_number_is_the_same_again() -> None:
    given = {"shared_name": "no_number", "dim": 2, "filter_freq": 2, "no_permission": np.nan}
    for _ in range(2):
        _native.library().workbench_embedding_variable(**given)


_INTS = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 3)


@FUZZED
@given(data=st.data())
def test_a_damaged_checkpoint_is_taken_or_refused(data: Any) -> None:
    def column(name: str) -> tf.Tensor:
        return keys(*data.draw(st.lists(_INTS, max_size=3), name))

    handle = made(filter_freq=data.draw(st.sampled_from((0, 1, 3, 2**32 - 1))), keep_versions=True)
    names = ("freqs", "versions", "filtered_keys", "filtered_freqs")
    shape = [data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))]
    columns = [column("keys"), tf.zeros(shape), *map(column, names)]
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        replace(
            handle, columns, part=data.draw(st.integers(0, 3)), parts=data.draw(st.integers(1, 3))
        )
    library = _native.library()
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        library.workbench_embedding_gather(
            handle,
            column("looked up"),
            tf.zeros([data.draw(st.integers(0, 2)), 2]),
            counts=[tf.constant(data.draw(st.lists(st.integers(-(2**31), 2**31 - 1))), tf.int32)],
            step=[tf.constant(data.draw(_INTS), tf.int64)],
        )
    found = library.workbench_embedding_export(
        handle,
        [tf.constant(data.draw(_INTS), tf.int64)],
        dim=2,
        steps_to_live=data.draw(st.integers(1, 2**63 - 1)),
        slot_names=[],
        slot_initials=[],
        num_slots=0,
    )
    assert len(set(found.keys.numpy())) == len(found.keys)
    waiting = found.filtered_freqs.numpy().reshape(-1, 2)
    for freqs in (found.freqs.numpy(), waiting[:, 0]):
        assert np.all((freqs >= 0) & (freqs < 2**32))
    for versions in (found.versions.numpy(), waiting[:, 1]):
        assert np.all(versions >= -1)

"""Filters of EmbeddingVariables: which keys get a row, in how much memory, over checkpoints."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.examples import few
from workbench.ops.embedding_variable.variable import (
    CBFFilter,
    CounterFilter,
    EmbeddingVariableOption,
    GlobalStepEvict,
    InitializerOption,
    get_embedding_variable,
)

v1 = tf.compat.v1


class Table:
    """A table with a filter in a session of its own, whose rows are all 1 and missing ones 0."""

    def __init__(self, filter_option, partitions=None, evict_option=None):
        self.graph = tf.Graph()
        with self.graph.as_default():
            self.step = v1.train.get_or_create_global_step()
            self.variable = get_embedding_variable(
                "emb",
                1,
                initializer=v1.ones_initializer(),
                partitioner=partitions and v1.fixed_size_partitioner(partitions),
                ev_option=EmbeddingVariableOption(
                    filter_option=filter_option,
                    evict_option=evict_option,
                    init_option=InitializerOption(default_value_dim=1),
                ),
            )
            self.keys = v1.placeholder(tf.int64, [None])
            self.rows = self.variable.sparse_read(self.keys)
            self.sizes = self.variable.sizes()
            self.initialize = v1.global_variables_initializer()
            self.saver = v1.train.Saver()
        self.session = v1.Session(graph=self.graph)
        self.session.run(self.initialize)

    def seen(self, keys):
        """Which keys have a row, after they came in one batch."""
        rows = self.session.run(self.rows, {self.keys: np.array(keys, np.int64)})
        return rows[:, 0].astype(bool).tolist()

    def waiting(self):
        return int(self.session.run(self.sizes)[1])

    def bytes(self):
        return int(self.session.run(self.sizes)[2])

    def at(self, step):
        with self.graph.as_default():
            self.step.load(step, self.session)

    def save(self, folder):
        with self.graph.as_default():
            return self.saver.save(self.session, str(folder / "model"))

    def restore(self, path):
        self.saver.restore(self.session, path)
        return self


_BATCHES = st.lists(
    st.lists(st.integers(0, 12) | st.integers(-(2**63), 2**63 - 1), max_size=12), max_size=8
)


@few(10)
@given(batches=_BATCHES, freq=st.integers(1, 4), partitions=st.sampled_from([None, 3]))
def test_rows_come_when_the_counts_say_so_and_never_later(batches, freq, partitions):
    exact = Table(CounterFilter(freq), partitions)
    tight = Table(CBFFilter(freq, 4, 0.5), partitions)
    counts = collections.Counter()
    for batch in batches:
        counts.update(batch)
        expected = [counts[key] >= freq for key in batch]
        assert exact.seen(batch) == expected
        assert all(found or not due for found, due in zip(tight.seen(batch), expected, strict=True))
    assert exact.waiting() == sum(count < freq for count in counts.values())
    assert tight.waiting() == 0


def test_a_bloom_filter_of_the_right_size_counts_as_exactly_as_one_can_ask():
    table = Table(CBFFilter(3, 20_000, 0.01, tf.int64))
    keys = np.arange(20_000) * 7919
    assert not any(table.seen(keys))
    assert np.mean(table.seen(keys)) < 0.01
    assert all(table.seen(keys))


@pytest.mark.parametrize("evict", [None, GlobalStepEvict(10**9)])
def test_keys_that_came_once_take_bounded_memory(evict):
    most = 4096
    table = Table(CounterFilter(2, most), evict_option=evict)
    bloom = Table(CBFFilter(2, most, 0.1))
    before = bloom.bytes()
    often = [-1, -2, -3]
    table.seen(often)
    for start in range(0, 400_000, 40_000):
        table.seen(range(start, start + 40_000))
        bloom.seen([start])
        assert table.waiting() <= most
    assert table.bytes() < 150 * most
    assert bloom.bytes() == before < 5 * most
    with table.graph.as_default():
        assert table.session.run(table.variable._contents.filtered_keys).size == table.waiting()


def test_waiting_keys_leave_with_the_rows(tmp_path):
    table = Table(CounterFilter(3), 2, GlobalStepEvict(5))
    table.at(10)
    assert table.seen([1, 1, 1, 2, 2, 3]) == [True, True, True, False, False, False]
    table.at(14)
    table.seen([3])
    table.at(16)
    path = table.save(tmp_path)
    assert table.waiting() == 1  # 1 and 2 were not used for six steps.
    assert table.seen([1, 2, 3]) == [False, False, True]
    again = Table(CounterFilter(3), 3, GlobalStepEvict(5)).restore(path)
    again.at(20)
    again.save(tmp_path / "later")
    assert again.seen([3]) == [False]
    again.restore(path)
    assert again.seen([3]) == [True]  # The third time.


def test_a_bloom_filter_goes_on_after_a_restore(tmp_path):
    option = CBFFilter(2, 1000, 0.001)
    table = Table(option, 2)
    assert not any(table.seen(range(100)))
    path = table.save(tmp_path)
    assert all(Table(option, 2).restore(path).seen(range(100)))
    # Another filter, or another number of partitions, begins to count anew.
    for other in (
        Table(option, 3),
        Table(option),
        Table(CBFFilter(2, 999, 0.1), 2),
        Table(CounterFilter(2)),
    ):
        assert not any(other.restore(path).seen(range(100)))
        assert all(other.seen(range(100)))
    assert all(Table(None).restore(path).seen([5]))


def test_keys_that_waited_are_counted_by_a_bloom_filter(tmp_path):
    for evict in (None, GlobalStepEvict(100)):
        table = Table(CounterFilter(3), evict_option=evict)
        table.seen([1, 1, 2])
        path = table.save(tmp_path)
        bloom = Table(CBFFilter(3, 1000, 0.001), 2).restore(path)
        assert bloom.seen([1, 2]) == [True, False]
        exact = Table(CounterFilter(3), 2, GlobalStepEvict(7)).restore(path)
        assert exact.seen([1, 2]) == [True, False]


def test_the_memory_of_a_bloom_filter_is_asked_for_by_name():
    table = Table(CBFFilter(2, 10_000_000, 0.01), 5)
    assert 90e6 < table.bytes() < 100e6
    message = "'emb' has .* counters of 8 bytes; expected less than this machine's"
    with pytest.raises(tf.errors.ResourceExhaustedError, match=message):
        Table(CBFFilter(2**31, 2**33, 0.001, tf.uint64))

"""Stages that are stopped and started again in one session: no batch is lost."""

from __future__ import annotations

import collections
import threading
import time

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.epochs import take_all
from workbench.core.options import SmartStageOptions, StageOptions

v1 = tf.compat.v1


def ten_at_a_time(session: v1.Session, batch: tf.Tensor, blocks: int) -> list[int]:
    seen = []
    for _ in range(blocks):
        with wb.prefetching(session):
            seen += [int(session.run(batch)) for _ in range(10)]
    return seen


@pytest.mark.parametrize("capacity", [1, 5])
@pytest.mark.parametrize("stages", [1, 2])
def test_the_next_block_goes_on_where_the_last_one_stopped(capacity, stages):
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(60)).get_next()
    for _ in range(stages):
        batch = wb.staged(batch * 1, StageOptions(capacity=capacity))
    with v1.Session() as session:
        assert ten_at_a_time(session, batch, 6) == list(range(60))
        with wb.prefetching(session):
            assert take_all(session, batch) == []


def test_a_smart_stage_goes_on_where_it_stopped(graph):
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(60)).get_next()
    out = batch * 2
    config, plan = wb.prepare_config(graph, None, SmartStageOptions(capacity=4), targets=[out])
    assert plan.stages
    with v1.Session(config=config) as session:
        assert ten_at_a_time(session, batch, 6) == list(range(60))


def test_several_producers_lose_no_batch_either():
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(60)).get_next()
    batch = wb.staged(batch, StageOptions(capacity=2, num_threads=3))
    with v1.Session() as session:
        seen = ten_at_a_time(session, batch, 5)
        with wb.prefetching(session):
            seen += take_all(session, batch)
    assert collections.Counter(seen) == collections.Counter(range(60))


def test_a_stage_of_two_sources_waits_for_the_stage_before_it():
    def slow(number):
        time.sleep(0.03)
        return number

    data = tf.data.Dataset.range(60)
    one = data.map(lambda i: tf.numpy_function(slow, [i], tf.int64))
    first = wb.staged(v1.data.make_one_shot_iterator(one).get_next())
    batch = wb.staged((first, v1.data.make_one_shot_iterator(data).get_next()))
    seen = []
    with v1.Session() as session:
        for _ in range(6):
            with wb.prefetching(session):
                seen += [session.run(batch) for _ in range(3)]
    assert seen == [(i, i) for i in range(18)]


def test_steps_outside_take_what_was_read_ahead_and_then_hear_of_the_stop():
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(60)).get_next()
    batch = wb.staged(batch, StageOptions(capacity=2))
    with v1.Session() as session:
        with wb.prefetching(session):
            seen = [session.run(batch)]
        with pytest.raises(tf.errors.CancelledError, match="was stopped with its session"):
            while True:
                seen.append(session.run(batch))
        with wb.prefetching(session):
            seen += [session.run(batch) for _ in range(3)]
    assert seen == list(range(len(seen)))


def test_an_initializer_between_two_blocks_begins_again():
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(60))
    batch = wb.staged(iterator.get_next(), StageOptions(capacity=3))
    with v1.Session() as session:
        for _ in range(3):
            session.run(iterator.initializer)
            assert ten_at_a_time(session, batch, 2) == list(range(20))


def test_another_session_gets_nothing_of_the_stopped_one():
    server = v1.train.Server.create_local_server()
    iterator = v1.data.make_initializable_iterator(tf.data.Dataset.range(60))
    batch = wb.staged(iterator.get_next(), StageOptions(capacity=3))
    with v1.Session(server.target) as first, v1.Session(server.target) as second:
        first.run(iterator.initializer)
        assert ten_at_a_time(first, batch, 1) == list(range(10))
        second.run(iterator.initializer)
        assert ten_at_a_time(second, batch, 1) == list(range(10))


def test_a_batch_that_was_being_read_comes_in_the_next_block():
    reads, goes_on = threading.Event(), threading.Event()

    def slow(number):
        if number == 1:
            reads.set()
            assert goes_on.wait(60)
        return number

    data = tf.data.Dataset.range(9).map(lambda i: tf.numpy_function(slow, [i], tf.int64))
    batch = wb.staged(v1.data.make_one_shot_iterator(data).get_next(), StageOptions(capacity=3))
    with v1.Session() as session:
        with wb.prefetching(session):
            assert session.run(batch) == 0
            assert reads.wait(30)
        with wb.prefetching(session):
            # The producer of the first block still reads: the one of this block waits for it.
            time.sleep(0.2)
            goes_on.set()
            assert take_all(session, batch) == list(range(1, 9))


def test_a_batch_of_an_epoch_before_does_not_come_late():
    reads, goes_on = threading.Event(), threading.Event()

    def slow(number):
        if number == 1 and not goes_on.is_set():
            reads.set()
            assert goes_on.wait(60)
        return number

    # Else a thread of the dataset's own may read it, on which initializing the iterator waits.
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    data = tf.data.Dataset.range(4).map(lambda i: tf.numpy_function(slow, [i], tf.int64))
    iterator = v1.data.make_initializable_iterator(data.with_options(options))
    batch = wb.staged(iterator.get_next(), StageOptions(capacity=3))
    with v1.Session() as session:
        session.run(iterator.initializer)
        with wb.prefetching(session):
            assert session.run(batch) == 0
            assert reads.wait(30)
        session.run(iterator.initializer)
        with wb.prefetching(session):
            goes_on.set()
            assert take_all(session, batch) == list(range(4))


def test_a_batch_that_fails_after_the_stop_is_said_to_be_lost(caplog):
    reads, goes_on = threading.Event(), threading.Event()

    def broken(number):
        reads.set()
        assert goes_on.wait(60)
        raise ValueError("shard 3 is damaged")

    data = tf.data.Dataset.range(9).map(lambda i: tf.numpy_function(broken, [i], tf.int64))
    wb.staged(v1.data.make_one_shot_iterator(data).get_next())
    with v1.Session() as session:
        with wb.prefetching(session) as (run,):
            assert reads.wait(30)
            run.announce_stop()
            goes_on.set()
            run.join()
        assert "while it read a batch, which then failed and is lost" in caplog.text
        assert "shard 3 is damaged" in caplog.text


def test_after_an_error_the_batches_before_it_are_kept():
    def broken_once(number):
        if number == 3 and not seen_error:
            seen_error.append(number)
            raise ValueError("shard 3 is damaged")
        return number

    seen_error: list[int] = []
    data = tf.data.Dataset.range(6).map(lambda i: tf.numpy_function(broken_once, [i], tf.int64))
    batch = wb.staged(v1.data.make_one_shot_iterator(data).get_next(), StageOptions(capacity=9))
    with v1.Session() as session:
        with wb.prefetching(session) as (run,):
            while not run.stops and not seen_error:
                time.sleep(0.01)
        with wb.prefetching(session):
            assert take_all(session, batch) == [0, 1, 2, 4, 5]

"""Parts of one batch that would go different ways are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.epochs import take_all
from workbench.core.options import StageOptions
from workbench.core.session.stage_sources import NEW_EACH_RUN
from workbench.errors import OptionError

v1 = tf.compat.v1
PASS = Path(__file__).parents[3] / "native/rewriting/restart/source_reads.cc"


def pairs(count: int = 30):
    data = tf.data.Dataset.range(count).map(lambda i: (i, i))
    return v1.data.make_one_shot_iterator(data).get_next()


def queued():
    queue = tf.queue.FIFOQueue(99, [tf.int64, tf.int64], [[], []])
    return queue.dequeue()


def random():
    noise = tf.random.uniform([], seed=1)
    return noise + 1, noise + 2


def generated():
    return v1.py_func(lambda: (1, 2), [], [tf.int64, tf.int64])


def called():
    iterator = v1.data.make_one_shot_iterator(tf.data.Dataset.range(30))
    inner = tf.function(lambda: iterator.get_next() + 1, autograph=False)
    return tf.function(lambda: (inner(), tf.constant(1, tf.int64)), autograph=False)()


def staged_before():
    return wb.staged(pairs(), name="before")


@pytest.mark.parametrize("source", [pairs, queued, random, generated, called, staged_before])
def test_two_stages_of_one_source_are_refused(source):
    features, labels = source()
    wb.staged(features, name="features")
    with pytest.raises(OptionError, match="'features' and 'labels' both read"):
        wb.staged(labels, name="labels")


def test_two_stages_whose_sources_differ_are_well():
    data = tf.data.Dataset.range(9)
    iterator = v1.data.make_one_shot_iterator(data)
    one, other = wb.staged(iterator.get_next()), wb.staged(iterator.get_next())
    joined = wb.prefetch_join([pairs(9), pairs(9)])
    with v1.Session() as session, wb.prefetching(session):
        assert len(set(session.run([one, other]))) == 2
        assert len(set(session.run(joined))) == 1


def test_a_stage_behind_another_that_reads_its_source_too_is_refused():
    features, labels = pairs()
    features = wb.staged(features, name="features")
    with pytest.raises(OptionError, match="'features' and 'both' both read 'IteratorGetNext'"):
        wb.staged((features, labels), name="both")


def test_a_fed_value_of_the_batch_itself_is_refused():
    features, labels = pairs()
    fed = v1.placeholder(tf.int64, [])
    with pytest.raises(OptionError, match="a value of its feed_dict"):
        wb.staged(features + fed, feed_dict={fed: labels})


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("source", [pairs, random, called])
def test_a_step_that_reads_the_rest_of_a_batch_itself_fails(source, joined):
    features, labels = source()
    features = wb.staged(features, StageOptions(capacity=2), name="features")
    fetches = features + labels if joined else [features, labels]
    with v1.Session() as session, wb.prefetching(session):
        session.run(features)  # A step that fails would cancel the making of the iterator.
        for _ in range(3):
            with pytest.raises(
                tf.errors.FailedPreconditionError,
                match=r"an item of stage 'features', which reads '(\S+)', and reads '\1' itself",
            ):
                session.run(fetches)


def test_steps_that_do_not_take_may_read_the_source():
    features, labels = pairs()
    features = wb.staged(features, StageOptions(capacity=2))
    with v1.Session() as session, wb.prefetching(session):
        seen = [session.run(features), session.run(labels), *take_all(session, features)]
    assert sorted(seen) == list(range(30))


def test_a_server_refuses_such_a_step_too():
    server = v1.train.Server.create_local_server()
    features, labels = pairs()
    features = wb.staged(features, name="features")
    refused = pytest.raises(tf.errors.FailedPreconditionError, match="takes an item of stage")
    with v1.Session(server.target) as session, wb.prefetching(session):
        session.run(features)
        with refused:
            session.run([features, labels])


def test_a_branch_that_is_not_taken_reads_nothing():
    asked = v1.placeholder(tf.bool, [])
    iterator = v1.data.make_one_shot_iterator(tf.data.Dataset.range(30))
    batch = wb.staged(iterator.get_next())
    chosen = tf.cond(asked, lambda: batch, iterator.get_next)
    with v1.Session() as session, wb.prefetching(session):
        assert session.run(chosen, {asked: True}) == 0


def test_the_graph_pass_knows_the_same_ops():
    listed = re.search(r"flat_hash_set<std::string>\{(.*?)\}", PASS.read_text(), re.DOTALL)[1]
    assert frozenset(re.findall(r'"(\w+)"', listed)) == NEW_EACH_RUN

"""EmbeddingVariables in checkpoints: training goes on as if nothing had happened."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tests.builders.grids import every_value
from workbench.errors import DataError
from workbench.ops.embedding_variable import optimizers as optimizers
from workbench.ops.embedding_variable.variable import (
    CounterFilter,
    EmbeddingVariableOption,
    GlobalStepEvict,
    InitializerOption,
    get_embedding_variable,
    read_embedding_variable,
)

v1 = tf.compat.v1

DIM = 4


class Model:
    """A table trained by one optimizer in a graph of its own, with a Saver of everything."""

    def __init__(self, rule="Adagrad", partitions=None, seed=1, dim=DIM, **option):
        self.graph = tf.Graph()
        with self.graph.as_default():
            v1.set_random_seed(seed)
            step = v1.train.get_or_create_global_step()
            option.setdefault("init_option", InitializerOption(default_value_dim=64))
            self.table = get_embedding_variable(
                "scope/emb",
                dim,
                partitioner=partitions and v1.fixed_size_partitioner(partitions),
                ev_option=EmbeddingVariableOption(**option),
            )
            self.keys = v1.placeholder(tf.int64, [None])
            self.rows = self.table.sparse_read(self.keys)
            self.loss = tf.reduce_sum(tf.square(self.rows - 0.5))
            optimizer = getattr(optimizers, f"{rule}Optimizer")(0.1)
            self.train = optimizer.minimize(self.loss, global_step=step)
            self.count = self.table.sizes()
            self.initialize = v1.global_variables_initializer()
            self.saver = v1.train.Saver()

    def session(self):
        return v1.Session(graph=self.graph)

    def losses(self, session, seed, steps=5):
        random = np.random.default_rng(seed)
        seen = []
        for _ in range(steps):
            feed = {self.keys: random.integers(-500, 1500, 80)}
            seen.append(session.run([self.loss, self.train], feed)[0])
        return seen

    def read(self, session, keys):
        return session.run(self.rows, {self.keys: keys})


@every_value(
    counts=[(None, None), (2, 5), (3, None), (None, 4)],
    rule=["GradientDescent", "Adagrad", "Adam", "Ftrl"],
)
def test_training_goes_on_after_a_restore(rule, counts, tmp_path):
    first, second = Model(rule, counts[0]), Model(rule, counts[1], seed=2)
    with first.session() as session:
        session.run(first.initialize)
        first.losses(session, 1)
        path = first.saver.save(session, str(tmp_path / "model"))
        expected = first.losses(session, 2)
        frame = first.table.to_pandas(session)
    with second.session() as session:
        session.run(second.initialize)
        second.losses(session, 7)  # All of this is replaced.
        second.saver.restore(session, path)
        assert second.losses(session, 2) == expected
        assert second.table.to_pandas(session).equals(frame)


def test_a_fresh_session_needs_only_the_restore(tmp_path):
    model = Model()
    with model.session() as session:
        session.run(model.initialize)
        path = model.saver.save(session, str(tmp_path / "empty"))
    with model.session() as session:
        model.saver.restore(session, path)
        assert list(session.run(model.count)[:2]) == [0, 0]
        assert model.read(session, [3]).shape == (1, DIM)


def test_names_in_a_checkpoint(tmp_path):
    model = Model("Adam", partitions=2)
    with model.session() as session:
        session.run(model.initialize)
        model.read(session, [1, 2, 3])
        path = model.saver.save(session, str(tmp_path / "model"))
    shapes = dict(tf.train.list_variables(path))
    names = {name: shape for name, shape in shapes.items() if name.startswith("scope/emb")}
    assert names == {
        "scope/emb-keys": [3],
        "scope/emb-values": [3, DIM],
        "scope/emb-freqs": [0],
        "scope/emb-versions": [0],
        "scope/emb-keys_filtered": [0],
        "scope/emb-freqs_filtered": [0],
        "scope/emb/Adam-values": [3, DIM],
        "scope/emb/Adam_1-values": [3, DIM],
        "scope/emb/default_rows": [64, DIM],
    }


def test_a_checkpoint_is_read_into_pandas(tmp_path):
    model = Model(
        filter_option=CounterFilter(filter_freq=2), evict_option=GlobalStepEvict(steps_to_live=9)
    )
    with model.session() as session:
        session.run(model.initialize)
        session.run(model.train, {model.keys: [7, 7, -3, 7, 8]})
        rows = model.read(session, [-3, 7])
        path = model.saver.save(session, str(tmp_path / "model"), global_step=4)
        frame = model.table.to_pandas(session)
    expected = pd.DataFrame({"key": [-3, 7], "freq": [2, 4], "version": [1, 1]})
    for d in range(DIM):
        expected[f"v{d}"] = rows[:, d]
    pd.testing.assert_frame_equal(frame, expected)
    pd.testing.assert_frame_equal(read_embedding_variable(path, "scope/emb"), expected)
    pd.testing.assert_frame_equal(read_embedding_variable(str(tmp_path), "scope/emb"), expected)
    with pytest.raises(DataError, match=r"has no EmbeddingVariable 'emb'; it has 'scope/emb'"):
        read_embedding_variable(path, "emb")
    with pytest.raises(DataError, match=r"no checkpoint can be read at '.*nothing'.*Saver.save"):
        read_embedding_variable(str(tmp_path / "nothing"), "emb")


def test_a_key_below_the_threshold_is_neither_seen_nor_trained(tmp_path):
    init = InitializerOption(default_value_dim=64, default_value_no_permission=-2.0)
    option = {"filter_option": CounterFilter(3), "init_option": init}
    model = Model("GradientDescent", **option)
    with model.session() as session:
        session.run(model.initialize)
        (defaults,) = [v for v in model.graph.get_collection("variables") if "default" in v.name]
        first = session.run(defaults)[5]
        session.run(model.train, {model.keys: [5]})
        np.testing.assert_array_equal(model.read(session, [5, 6]), np.full((2, DIM), -2.0))
        path = model.saver.save(session, str(tmp_path / "model"))
        np.testing.assert_array_equal(model.read(session, [5]), [first])
        assert list(session.run(model.count)[:2]) == [1, 1]
    restored = Model("GradientDescent", partitions=2, **option)
    with restored.session() as session:
        restored.saver.restore(session, path)
        np.testing.assert_array_equal(restored.read(session, [6, 5])[1], first)
        assert list(session.run(restored.count)[:2]) == [1, 1]
    unfiltered = Model("GradientDescent")
    with unfiltered.session() as session:
        unfiltered.saver.restore(session, path)
        assert list(session.run(unfiltered.count)[:2]) == [0, 0]


def test_counts_of_distinct_keys_count():
    with tf.Graph().as_default(), v1.Session() as session:
        table = get_embedding_variable(
            "emb",
            2,
            initializer=v1.ones_initializer(),
            ev_option=EmbeddingVariableOption(filter_option=CounterFilter(3)),
            partitioner=v1.fixed_size_partitioner(2),
        )
        rows = table.sparse_read([4, 5, 6], counts=[3, 2, 4])
        session.run(v1.global_variables_initializer())
        assert session.run(rows).tolist() == [[1, 1], [0, 0], [1, 1]]
        assert session.run(rows).tolist() == [[1, 1]] * 3
        assert table.to_pandas(session)["freq"].tolist() == [6, 4, 8]


def test_rows_that_were_not_used_leave_when_saving(tmp_path):
    model = Model("Adagrad", 2, evict_option=GlobalStepEvict(steps_to_live=2))
    with model.session() as session:
        session.run(model.initialize)
        for batch in ([1, 2], [2, 3], [3], [3]):  # used at steps 0, 1, 2, 3
            session.run(model.train, {model.keys: batch})
        assert session.run(model.count)[0] == 3
        assert len(model.table.to_pandas(session)) == 3  # Looking takes nothing out.
        path = model.saver.save(session, str(tmp_path / "model"))
        assert model.table.to_pandas(session)["key"].tolist() == [3]
    frame = read_embedding_variable(path, "scope/emb")
    assert frame["key"].tolist() == [3] and frame["version"].tolist() == [3]


def test_slots_made_later_start_anew(tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        table = get_embedding_variable("emb", 2, initializer=v1.ones_initializer())
        loss = tf.reduce_sum(table.sparse_read([1]))
        early = v1.train.Saver()
        step = optimizers.AdagradOptimizer(0.1).minimize(loss)
        session.run(v1.global_variables_initializer())
        session.run(step)
        after_one = session.run(loss)
        path = early.save(session, str(tmp_path / "model"))
        session.run(step)
        early.restore(session, path)
        assert session.run(loss) == after_one
        session.run(step)
        np.testing.assert_allclose(session.run(loss), 2 * (1 - 2 * 0.1 / np.sqrt(1.1)), rtol=1e-6)


def test_two_optimizers_have_slots_of_their_own():
    with tf.Graph().as_default(), v1.Session() as session:
        table = get_embedding_variable("emb", 2)
        loss = tf.reduce_sum(table.sparse_read([1]))
        made = [optimizers.AdagradOptimizer(0.1, start) for start in (0.1, 0.1, 3.0)]
        steps = [optimizer.minimize(loss) for optimizer in made]
        session.run(v1.global_variables_initializer())
        session.run(steps)
        names = [optimizer.get_slot(table, "accumulator").name for optimizer in made]
        assert names == ["Adagrad", "Adagrad_1", "Adagrad_2"]
        slots = session.run(table.export(table.slots.all()).slots)
        np.testing.assert_allclose([slot[0, 0] for slot in slots], [1.1, 1.1, 4.0])


def test_a_checkpoint_of_another_model_is_refused(tmp_path):
    model = Model(dim=3)
    with model.session() as session:
        session.run(model.initialize)
        model.read(session, [1, 2])
        path = model.saver.save(session, str(tmp_path / "model"))
    absent = Model("Ftrl", dim=3)
    with absent.session() as session, pytest.raises(tf.errors.NotFoundError, match="emb/Ftrl"):
        absent.saver.restore(session, path)


def test_a_meta_graph_restores_and_trains(tmp_path):
    model = Model("Ftrl", partitions=2)
    with model.session() as session:
        session.run(model.initialize)
        model.losses(session, 1)
        path = model.saver.save(session, str(tmp_path / "model"))
        expected = model.losses(session, 2)
    names = model.keys.name, model.loss.name, model.train.name
    with tf.Graph().as_default(), v1.Session() as session:
        saver = v1.train.import_meta_graph(f"{path}.meta")
        saver.restore(session, path)
        random = np.random.default_rng(2)
        seen = [
            session.run(names[1:], {names[0]: random.integers(-500, 1500, 80)})[0] for _ in range(5)
        ]
    assert seen == expected


def test_a_monitored_session_saves_and_restores(tmp_path):
    def run(steps):
        model = Model("Adagrad", partitions=2)
        with model.graph.as_default():
            hooks = [v1.train.StopAtStepHook(last_step=steps)]
            with v1.train.MonitoredTrainingSession(
                checkpoint_dir=str(tmp_path), hooks=hooks, save_checkpoint_steps=1000
            ) as session:
                random = np.random.default_rng(steps)
                seen = []
                while not session.should_stop():
                    feed = {model.keys: random.integers(0, 50, 20)}
                    seen.append(session.run([model.loss, model.train], feed)[0])
                return seen

    assert len(run(6)) == 6
    frame = read_embedding_variable(str(tmp_path), "scope/emb")
    again = run(9)
    assert len(again) == 3
    later = read_embedding_variable(str(tmp_path), "scope/emb")
    assert set(later["key"]) >= set(frame["key"])

    def start(model):
        with model.session() as session:
            model.saver.restore(session, v1.train.latest_checkpoint(str(tmp_path)))
            return model.table.to_pandas(session)

    assert start(Model("Adagrad")).equals(later)

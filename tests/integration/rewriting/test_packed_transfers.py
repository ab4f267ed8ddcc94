"""What tasks send one another is packed into few messages; values are the same to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.examples import few
from tests.builders.grids import every_value
from tests.builders.servers import Received, Servers, received
from workbench.core.options import SMALL_TRANSFER_BYTES
from workbench.errors import OptionError
from workbench.ops import grouped_embedding_lookup

v1 = tf.compat.v1
PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def servers() -> Servers:
    wb.load_library()
    return Servers({"ps": 2, "worker": 1})


@pytest.fixture(scope="module")
def one_ps() -> Servers:
    wb.load_library()
    return Servers({"ps": 1, "worker": 1})


def session_of(servers: Servers, *, packed: bool, **options: Any) -> Any:
    config = wb.cluster.pack_transfers(**options) if packed else v1.ConfigProto()
    return v1.Session(servers.target, config=config)


def both_ways(servers: Servers, run: Callable[[Any], Any], **options: Any) -> tuple[Any, Any]:
    """What a function does with a session, as it is and with packed transfers."""
    with (
        session_of(servers, packed=False) as plain,
        session_of(servers, packed=True, **options) as packed,
    ):
        return run(plain), run(packed)


def is_packed(each: Received) -> bool:
    return "packed/" in each.tensor


class TestTraining:
    TABLES, ROWS, DIM = 5, 60, 4

    def model(self, servers: Servers, fusion: str | None, *, resource: bool, adam: bool) -> Any:
        """Placeholders of ids, and a step with its loss."""
        ids = [v1.placeholder(tf.int64, [6, None]) for _ in range(self.TABLES)]
        scope = v1.variable_scope("model", use_resource=resource)
        with servers.placed(), wb.fused_embeddings(fusion), scope:
            step = v1.train.get_or_create_global_step()
            found = []
            for i, each in enumerate(ids):
                values = np.random.default_rng(i).normal(size=(self.ROWS, self.DIM))
                table = v1.get_variable(f"table_{i}", initializer=tf.constant(values, tf.float32))
                found.append(
                    wb.safe_embedding_lookup_sparse(table, tf.sparse.from_dense(each), name=f"f{i}")
                )
            hidden = tf.concat(found, 1)
            for layer in range(3):
                weights = np.random.default_rng(layer).normal(size=(20, 20)) / 5
                kernel = v1.get_variable(
                    f"kernel_{layer}", initializer=tf.constant(weights, tf.float32)
                )
                bias = v1.get_variable(f"bias_{layer}", initializer=tf.zeros([20]))
                hidden = tf.tanh(tf.matmul(hidden, kernel) + bias)
            loss = tf.reduce_mean(tf.square(hidden - 0.5))
            optimizer = v1.train.AdamOptimizer(0.01) if adam else v1.train.AdagradOptimizer(0.1)
            return ids, optimizer.minimize(loss, global_step=step), loss

    def batches(self) -> list[list[np.ndarray]]:
        random = np.random.default_rng(3)
        return [
            [random.integers(0, self.ROWS, (6, 1 + i % 3)) for i in range(self.TABLES)]
            for _ in range(6)
        ]

    def trained(self, session: Any, ids: Any, train_op: Any, loss: Any) -> list[Any]:
        """Losses of some steps, then all variables."""
        session.run(v1.global_variables_initializer())
        losses = [
            session.run([loss, train_op], dict(zip(ids, batch, strict=True)))[0]
            for batch in self.batches()
        ]
        return [np.stack(losses), *session.run(v1.global_variables())]

    @every_value(
        fusion=[None, "v1", "v2", "grouped"],
        made=[(False, False), (True, False), (False, True)],
    )
    def test_is_the_same_to_the_bit(
        self, servers: Servers, fusion: str | None, made: tuple[bool, bool]
    ) -> None:
        resource, adam = made
        built = self.model(servers, fusion, resource=resource, adam=adam)
        plain, packed = both_ways(servers, lambda session: self.trained(session, *built))
        for one, other in zip(plain, packed, strict=True):
            np.testing.assert_array_equal(one, other)

    @pytest.mark.parametrize("fusion", ["v2", "grouped"])
    def test_losses_are_those_of_stock_lookups(self, one_ps: Servers, fusion: str) -> None:
        found = []
        for chosen in (None, fusion):
            with tf.Graph().as_default():
                built = self.model(one_ps, chosen, resource=False, adam=False)
                with session_of(one_ps, packed=chosen is not None) as session:
                    found.append(self.trained(session, *built))
        for stock, other in zip(*found, strict=True):
            np.testing.assert_allclose(stock, other, rtol=1e-5, atol=1e-6)

    def messages(self, servers: Servers, fusion: str | None) -> tuple[list[Received], ...]:
        ids, train_op, loss = self.model(servers, fusion, resource=False, adam=False)
        feeds = dict(zip(ids, self.batches()[0], strict=True))

        def run(session: Any) -> list[Received]:
            session.run(v1.global_variables_initializer())
            return received(session, [loss, train_op], feeds)

        return both_ways(servers, run)

    @pytest.mark.parametrize("fusion", [None, "v2", "grouped"])
    def test_takes_four_messages(self, one_ps: Servers, fusion: str | None) -> None:
        plain, packed = self.messages(one_ps, fusion)
        # Ids, rows and gradients of each table; each dense weight and its gradient.
        assert len(plain) >= 3 * self.TABLES + 2 * 6
        assert [each.tensor.partition("packed/")[2].partition("/")[0] for each in packed] == [
            "6_tensors_to_worker_0_hop_1",
            f"{self.TABLES}_tensors_to_worker_0_hop_2",
            f"{self.TABLES + 1}_tensors_to_ps_0_hop_1",
            f"{self.TABLES + 6}_tensors_to_ps_0_hop_3",
        ]

    def test_each_parameter_server_has_its_own_messages(self, servers: Servers) -> None:
        _, packed = self.messages(servers, "grouped")
        # Control edges: the step is counted when both servers have updated their variables.
        packed = [each for each in packed if "/Adagrad/update" not in each.tensor]
        assert all(map(is_packed, packed))
        ways = [(each.sender, each.receiver) for each in packed]
        assert {("ps 0", "worker 0"), ("ps 1", "worker 0"), ("worker 0", "ps 1")} <= set(ways)
        assert len(ways) <= 8

    def test_no_table_travels(self, one_ps: Servers) -> None:
        """What arrives is as small as a batch: a table would be of 960 bytes each."""
        ids, train_op, loss = self.model(one_ps, "grouped", resource=False, adam=False)
        with session_of(one_ps, packed=True) as session:
            session.run(v1.global_variables_initializer())
            options = v1.RunOptions(output_partition_graphs=True)
            metadata = v1.RunMetadata()
            feeds = dict(zip(ids, self.batches()[0], strict=True))
            session.run([loss, train_op], feeds, options=options, run_metadata=metadata)
        packs = [
            node
            for graph in metadata.partition_graphs
            for node in graph.node
            if node.op == "WorkbenchPackTensors"
        ]
        names = {name for node in packs for name in node.input}
        assert names and not any("table" in name for name in names), names


class TestWhatStays:
    def sums(self, device: str, tensors: list[Any]) -> Any:
        with tf.device(device):
            return tf.add_n([tf.reduce_sum(tf.cast(each, tf.float32)) for each in tensors])

    def fed(self, count: int, dtype: Any = tf.float32, shape: Any = (None,)) -> list[Any]:
        """Tensors that the parameter server makes of fed ones, and so no constants."""
        with tf.device(PS):
            return [
                v1.placeholder_with_default(tf.fill([2] * len(shape), tf.cast(i + 1, dtype)), shape)
                + tf.cast(i, dtype)
                for i in range(count)
            ]

    def test_large_tensors_of_known_size(self, one_ps: Servers) -> None:
        with tf.device(PS):
            fits = SMALL_TRANSFER_BYTES // 4
            sizes = (3, fits, fits + 1, 100_000)
            made = [v1.get_variable(f"v{size}", [size]).read_value() * 2 for size in sizes]
        found = self.sums(WORKER, made)

        def run(session: Any) -> Any:
            session.run(v1.global_variables_initializer())
            return received(session, found)

        plain, packed = both_ways(one_ps, run)
        assert len(plain) == 4 and sum(map(is_packed, packed)) == 1 and len(packed) == 3
        _, packed = both_ways(one_ps, run, largest_bytes=1_000_000)
        assert len(packed) == 1
        _, packed = both_ways(one_ps, run, largest_bytes=0)
        assert not any(map(is_packed, packed)) and len(packed) == 4

    def test_one_tensor_alone_is_not_packed(self, one_ps: Servers) -> None:
        found = self.sums(WORKER, self.fed(1))
        plain, packed = both_ways(one_ps, lambda session: received(session, found))
        assert len(packed) == len(plain) == 1 and not is_packed(packed[0])

    def test_strings(self, one_ps: Servers) -> None:
        with tf.device(PS):
            texts = [tf.strings.as_string(each) for each in self.fed(3)]
        with tf.device(WORKER):
            joined = tf.strings.join([tf.strings.reduce_join(each) for each in texts])
        plain, packed = both_ways(
            one_ps, lambda session: (session.run(joined), received(session, joined))
        )
        assert plain == packed and len(packed[1]) == 3

    def test_both_sides_of_a_branch(self, one_ps: Servers) -> None:
        wanted = v1.placeholder(tf.bool, [])
        made = self.fed(2)
        with tf.device(PS):
            taken = v1.cond(wanted, lambda: made[0] * 2, lambda: made[0] * 3)
            dead, alive = tf.raw_ops.Switch(data=made[1], pred=wanted)
            merged = tf.raw_ops.Merge(
                inputs=[self.sums(WORKER, [dead]), self.sums(WORKER, [alive]) * 10]
            ).output
        found = self.sums(WORKER, [taken, made[0], made[1]]) + merged
        for value in (False, True):
            plain, packed = both_ways(
                one_ps, lambda session, v=value: session.run(found, {wanted: v})
            )
            assert plain == packed

    def test_in_a_loop(self, one_ps: Servers) -> None:
        made = self.fed(3)

        def body(i: Any, total: Any) -> Any:
            with tf.device(WORKER):
                on_worker = total + made[0][0] + made[1][0]
            with tf.device(PS):
                return i + 1, on_worker * 2 + made[2][0]

        with tf.device(PS):
            _, total = v1.while_loop(lambda i, total: i < 4, body, [0, 0.0])
        found = self.sums(WORKER, [total, *made])
        plain, packed = both_ways(one_ps, lambda session: session.run(found))
        assert plain == packed

    def test_what_waits_for_the_same_run(self, one_ps: Servers) -> None:
        """A queue's tensor is there only after the worker got another one of the same hop."""
        (made,) = self.fed(1)
        with tf.device(PS):
            queue = v1.FIFOQueue(1, [tf.float32], shapes=[[]])
            dequeued = queue.dequeue()
            put = queue.enqueue(self.sums(WORKER, [made]))
        found = self.sums(WORKER, [dequeued, made])
        plain, packed = both_ways(one_ps, lambda session: session.run([found, put])[0])
        assert plain == packed

    def test_what_waits_inside_of_a_function(self, one_ps: Servers) -> None:
        """The same, where the queue's op is in a function that stays a call."""
        (made,) = self.fed(1)
        with tf.device(PS):
            queue = v1.FIFOQueue(1, [tf.float32], shapes=[[]])
            taken = tf.function(queue.dequeue, experimental_attributes={"_noinline": True})()
            put = queue.enqueue(self.sums(WORKER, [made]))
        found = self.sums(WORKER, [taken, made])
        in_time = v1.RunOptions(timeout_in_ms=60_000)
        plain, packed = both_ways(
            one_ps, lambda session: session.run([found, put], options=in_time)[0]
        )
        assert plain == packed

    def test_what_a_run_does_not_need(self, one_ps: Servers) -> None:
        made = self.fed(3)
        with tf.device(PS):
            fails = tf.debugging.check_numerics(made[2] / 0.0, "is not asked for")
        one, all_of_them = self.sums(WORKER, made[:2]), self.sums(WORKER, [*made[:2], fails])
        with session_of(one_ps, packed=True) as session:
            assert session.run(one) > 0
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not asked for"):
                session.run(all_of_them)


DTYPES = (tf.int32, tf.int64, tf.float32, tf.float16, tf.bfloat16, tf.bool, tf.uint8, tf.complex64)


@few(12)
@given(data=st.data())
def test_drawn_graphs(servers: Servers, data: Any) -> None:
    """Tensors of all kinds go to and fro between three tasks, some of them empty."""
    places = [PS, "/job:ps/task:1", WORKER]
    with tf.Graph().as_default():
        made: list[Any] = []
        for i in range(data.draw(st.integers(2, 5))):
            shape = data.draw(st.lists(st.integers(0, 3), max_size=3))
            with tf.device(data.draw(st.sampled_from(places))):
                fed = v1.placeholder_with_default(tf.fill(shape, i - 2), [None] * len(shape))
                made.append(tf.cast(fed, data.draw(st.sampled_from(DTYPES))))
        for _ in range(data.draw(st.integers(1, 12))):
            used = data.draw(st.lists(st.sampled_from(range(len(made))), min_size=1, max_size=3))
            with tf.device(data.draw(st.sampled_from(places))):
                sums = [tf.reduce_sum(tf.cast(made[i], tf.float32)) for i in used]
                made.append(
                    tf.cast(tf.add_n(sums), data.draw(st.sampled_from((tf.int64, tf.float32))))
                )
        with tf.device(WORKER):
            found = [tf.identity(each) for each in made]
        plain, packed = both_ways(
            servers, lambda session: (session.run(found), len(received(session, found)))
        )
    for one, other in zip(plain[0], packed[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert packed[1] <= plain[1]


class TestConfig:
    def test_is_asked_for_once(self) -> None:
        config = wb.cluster.pack_transfers(wb.cluster.pack_transfers(), largest_bytes=7)
        (entry,) = config.graph_options.rewrite_options.custom_optimizers
        assert entry.parameter_map["largest_bytes"].i == 7

    def test_goes_with_a_plan_of_stages(self, one_ps: Servers) -> None:
        with tf.device(PS):
            weights = [v1.get_variable(f"w{i}", [3], use_resource=False) for i in range(4)]
        with tf.device(WORKER):
            batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(5)).get_next()
            ahead = tf.strings.length(tf.strings.as_string(batch * 1000))
            loss = tf.add_n([tf.reduce_sum(each) for each in weights]) * tf.cast(ahead, tf.float32)
        graph = v1.get_default_graph()
        config, plan = wb.prepare_config(graph, wb.cluster.pack_transfers(), targets=[loss])
        assert plan.stages
        hook = wb.make_prefetch_hook()
        init = v1.train.Scaffold(init_op=v1.global_variables_initializer())
        creator = v1.train.ChiefSessionCreator(init, master=one_ps.target, config=config)
        with v1.train.MonitoredSession(creator, hooks=[hook]) as session:
            found = [session.run(loss) for _ in range(5)]
            assert len(found) == 5
            with pytest.raises(tf.errors.OutOfRangeError):
                session.run(loss)

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"config": 3}, "config is 3 of type int; expected a ConfigProto"),
            ({"largest_bytes": -1}, "largest_bytes is -1; expected an integer of at least 0"),
            ({"largest_bytes": 0.5}, "largest_bytes is 0.5; expected an integer of at least 0"),
        ],
    )
    def test_says_what_is_wrong(self, given: dict[str, Any], said: str) -> None:
        with pytest.raises(OptionError, match=said):
            wb.cluster.pack_transfers(**given)

    @pytest.mark.parametrize("change", [{"format": 2}, {"largest_bytes": -5}])
    def test_of_another_version_is_refused(self, change: dict[str, int]) -> None:
        config = wb.cluster.pack_transfers()
        (entry,) = config.graph_options.rewrite_options.custom_optimizers
        for name, value in change.items():
            entry.parameter_map[name].i = value
        with (
            v1.Session(config=config) as session,
            pytest.raises(
                tf.errors.InvalidArgumentError, match=r"make it by wb\.cluster\.pack_transfers"
            ),
        ):
            session.run(tf.constant(1) + 1)


def test_features_that_share_a_table_send_their_ids_once(one_ps: Servers) -> None:
    """Not packed: ids, rows and gradients of all three are a message each."""
    ids = [v1.placeholder(tf.int64, [None, None]) for _ in range(3)]
    with one_ps.placed():
        table = v1.get_variable("table", [10, 2], use_resource=False)
        found = grouped_embedding_lookup([table] * 3, [tf.sparse.from_dense(each) for each in ids])
        loss = tf.reduce_sum(tf.square(tf.add_n(found)))
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    with session_of(one_ps, packed=False) as session:
        session.run(v1.global_variables_initializer())
        feeds = {key: [[3], [9]] for key in ids}
        sent = received(session, [loss, train_op], feeds)
    of_lookup = [each for each in sent if "learning_rate" not in each.tensor]
    assert len(of_lookup) == 3, sent


def test_an_id_outside_its_table_names_the_feature(one_ps: Servers) -> None:
    ids = v1.placeholder(tf.int64, [None, None])
    with one_ps.placed(), wb.fused_embeddings("grouped"):
        table = v1.get_variable("table", [10, 2], use_resource=False)
        found = wb.safe_embedding_lookup_sparse(table, tf.sparse.from_dense(ids), name="shop")
        other = wb.safe_embedding_lookup_sparse(table, tf.sparse.from_dense(ids), name="user")
        total = tf.reduce_sum(found + other)
    with session_of(one_ps, packed=True) as session:
        session.run(v1.global_variables_initializer())
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"feature '(shop|user)': row 1: id"
        ):
            session.run(total, {ids: [[3], [10]]})

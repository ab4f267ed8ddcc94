"""Models of TensorFlow 2 in sessions: their signatures are calls, and plans reach the functions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.saved_models import TABLE, grouped, loaded, ran
from workbench.errors import PlanError

v1 = tf.compat.v1
FEATURES = 26


@pytest.fixture(autouse=True)
def graph() -> tf.Graph:
    """Not the default one: models are built and saved eagerly."""
    return tf.Graph()


def spec(name: str) -> tf.TensorSpec:
    return tf.TensorSpec([None], tf.int64, name=name)


class Model(tf.Module):
    """Features in a table each, a counter, and functions within functions."""

    def __init__(self, features: int = FEATURES, *, scale: float = 2.0) -> None:
        super().__init__()
        self.tables = [tf.Variable(TABLE + k) for k in range(features)]
        self.calls = tf.Variable(0, dtype=tf.int64)
        self.scale = scale
        names = [spec(f"c{k}") for k in range(features)]
        self.score = tf.function(self.scored, input_signature=[names])
        self.counted = tf.function(self.with_count, input_signature=[names])

    @tf.function
    def found(self, ids: Any) -> tf.Tensor:
        pairs = zip(self.tables, ids, strict=True)
        return tf.concat([tf.nn.embedding_lookup(table, own) for table, own in pairs], 1)

    def scored(self, ids: Any) -> dict[str, tf.Tensor]:
        found = self.found(ids) * self.scale
        return {"scores": tf.reduce_sum(found, 1), "found": found}

    def with_count(self, ids: Any) -> dict[str, tf.Tensor]:
        self.calls.assign_add(1)
        found = self.found(ids)
        return {"found": found, "calls": self.calls.read_value()}


def save(folder: Path, model: Any, **signatures: Any) -> None:
    tf.saved_model.save(model, str(folder), signatures=signatures)


def ends_of(meta: Any, name: str = "serving_default") -> tuple[dict[str, str], dict[str, Any]]:
    """The fetches of a signature, and what it is fed."""
    signature = meta.signature_def[name]
    fetches = {key: info.name for key, info in signature.outputs.items()}
    feeds = {}
    for number, key in enumerate(sorted(signature.inputs)):
        info = signature.inputs[key]
        shape = [3 if dim.size < 0 else dim.size for dim in info.tensor_shape.dim]
        feeds[info.name] = (np.arange(np.prod(shape)).reshape(shape) * 7 + number) % 50
    return fetches, feeds


def alike(one: Any, other: Any) -> None:
    for first, second in zip(tf.nest.flatten(one), tf.nest.flatten(other), strict=True):
        assert first.dtype == second.dtype and first.tobytes() == second.tobytes()


def of_module(folder: Path) -> int:
    model = Model()
    save(folder, model, serving_default=model.score)
    return FEATURES


def of_keras(folder: Path) -> int:
    ids = [keras.Input((2,), dtype="int64", name=f"c{k}") for k in range(5)]
    found = [keras.layers.Flatten()(keras.layers.Embedding(50, 8)(each)) for each in ids]
    scores = keras.layers.Dense(1)(keras.layers.Concatenate()(found))
    keras.Model(ids, scores).export(str(folder), verbose=False)
    return 5


class TestASignature:
    @pytest.mark.parametrize("made", [of_module, of_keras])
    def test_is_one_op_to_the_bit(self, made: Callable[[Path], int], tmp_path: Path) -> None:
        count = made(tmp_path)
        plan = wb.plan_fusion(tmp_path, signature="serving_default")
        assert len(plan.of("lookup")) == count, plan.describe()
        assert len({each.op for each in plan.of("lookup")}) == 1
        results = []
        for config in (None, wb.apply(plan)):
            with loaded(tmp_path, config) as (session, meta):
                found, ops = ran(session, *ends_of(meta))
                assert grouped(ops) == (config is not None)
                assert ("ResourceGather" in ops) <= (config is None)
                results.append(found)
        alike(*results)

    def test_by_its_definition_and_by_fetches_is_the_same_plan(self, tmp_path: Path) -> None:
        of_module(tmp_path)
        by_folder = wb.plan_fusion(tmp_path, signature="serving_default")
        with loaded(tmp_path) as (session, meta):
            by_name = wb.plan_fusion(meta, signature="serving_default")
            fetches, _ = ends_of(meta)
            by_fetches = wb.plan_fusion(session.graph, fetches=fetches)
            wb.apply(by_folder, graph=session.graph)
        assert by_folder.fused == by_name.fused == by_fetches.fused
        regions = [
            tf.compat.v1.GraphDef.FromString(each.region)
            for each in (by_folder, by_name, by_fetches)
        ]
        assert regions[0] == regions[1] == regions[2] and regions[0].library.function

    def test_is_one_of_several_and_the_others_stay(self, tmp_path: Path) -> None:
        model = Model(3)
        save(tmp_path, model, serving_default=model.score, counted=model.counted)
        plan = wb.plan_fusion(tmp_path, signature="counted")
        assert len(plan.of("lookup")) == 3 and not plan.refusals
        results = []
        for config in (None, wb.apply(plan)):
            with loaded(tmp_path, config) as (session, meta):
                counts = []
                for name in ("counted", "serving_default", "counted"):
                    found, ops = ran(session, *ends_of(meta, name))
                    counts.append(grouped(ops))
                    results.append(found)
                assert counts == ([0, 0, 0] if config is None else [1, 0, 1])
        alike(results[:3], results[3:])
        assert results[3]["calls"] == 1 and results[5]["calls"] == 2

    def test_is_fused_on_a_server(self, tmp_path: Path) -> None:
        of_module(tmp_path)
        plan = wb.plan_fusion(tmp_path, signature="serving_default")
        target = v1.train.Server.create_local_server().target
        results = []
        for config in (None, wb.apply(plan)):
            with tf.Graph().as_default(), v1.Session(target, config=config) as session:
                meta = v1.saved_model.load(session, ["serve"], str(tmp_path))
                found, ops = ran(session, *ends_of(meta))
                assert grouped(ops) == (config is not None)
                results.append(found)
        alike(*results)

    def test_is_verified(self, tmp_path: Path) -> None:
        of_module(tmp_path)
        plan = wb.plan_fusion(tmp_path, signature="serving_default")
        with loaded(tmp_path, wb.apply(plan)) as (session, meta):
            verification = plan.verify(session, ends_of(meta)[1])
        assert verification.right, verification.describe()
        assert len(verification.of("same bits")) == FEATURES, verification.describe()

    def test_is_measured_as_it_is_served(self, tmp_path: Path) -> None:
        model = Model(3)
        save(tmp_path, model, serving_default=model.score)
        quick = {"clients": (1,), "p99_limit": None, "rounds": 2, "budget": "1s", "progress": False}
        comparison = wb.serve_bench(wb.served(tmp_path), ["auto_fused"], **quick)
        assert [each.fused_ops for each in comparison.variants] == [0, 3]
        assert all(each.passed and each.requests == 16 for each in comparison.receipts)


class TestRuns:
    def test_of_any_end_give_what_stock_does(self, tmp_path: Path) -> None:
        model = Model(3)
        save(tmp_path, model, serving_default=model.counted)
        plan = wb.plan_fusion(tmp_path, signature="serving_default")
        results = []
        for config in (None, wb.apply(plan)):
            with loaded(tmp_path, config) as (session, meta):
                fetches, feeds = ends_of(meta)
                graph = session.graph
                output = graph.get_tensor_by_name(fetches["found"])
                found = [session.run(fetches["found"], feeds)]
                # As an op alone it counts, too.
                session.run(output.op, feeds)
                found.append(session.run(fetches["calls"], feeds))
                assert found[-1] == 3
                given = np.ones([3, 24], np.float32)
                found.append(session.run(fetches["found"], {fetches["found"]: given}))
                found.append(session.make_callable(fetches, list(feeds))(*feeds.values()))
                handle = session.partial_run_setup(list(fetches.values()), list(feeds))
                first = next(iter(feeds))
                found.append(session.partial_run(handle, list(fetches.values()), feeds))
                with pytest.raises(tf.errors.InvalidArgumentError, match="must feed a value"):
                    session.run(fetches, {first: feeds[first]})
                with pytest.raises((ValueError, KeyError), match="not in the graph|does not exist"):
                    session.run(f"{output.op.name}/{output.op.name}/concat:0", feeds)
                found.append(session.run(fetches["calls"], feeds))
            results.append(found)
        alike(*results)

    @pytest.mark.parametrize("same", [False, True], ids=["another", "its own"])
    def test_keep_the_order_around_a_call(self, same: bool, graph: tf.Graph) -> None:
        built = Around(graph, same=same)
        plan = wb.plan_fusion(graph, fetches=[built.rows, built.after, built.before])
        # A lookup that waits for a read stays, for no op waits for a part of what it reads.
        assert len(plan.of("lookup")) == (not same), plan.describe()
        results = []
        for config in (None, wb.apply(plan)):
            with v1.Session(graph=graph, config=config) as session:
                session.run(v1.global_variables_initializer())
                found = []
                for number in range(4):
                    ends = [built.before, built.rows, built.after]
                    values, ops = ran(session, ends, {built.ids: [number, 1]})
                    assert grouped(ops) == (config is not None and not same)
                    found.append([*values, session.run(built.seen)])
                results.append(found)
        alike(*results)
        # Read, then added to by the call, then doubled behind it.
        assert [int(each[2]) for each in results[0]] == [2, 6, 14, 30]
        assert [int(each[0]) for each in results[0]] == ([0, 2, 6, 14] if same else [5] * 4)


class Around:
    """A call between a read of a variable, which is its argument, and a change behind it."""

    def __init__(self, graph: tf.Graph, *, same: bool) -> None:
        with graph.as_default():
            self.seen = v1.get_variable("seen", initializer=np.float32(0), use_resource=True)
            table = v1.get_variable("table", initializer=TABLE, use_resource=True)
            self.ids = v1.placeholder(tf.int64, [None], "ids")

            @tf.function
            def look_up(ids: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
                self.seen.assign_add(1.0)
                rows = tf.nn.embedding_lookup(table, ids)
                return rows + before * 0

            other = v1.get_variable("other", initializer=np.float32(5), use_resource=True)
            read = (self.seen if same else other).read_value()
            self.before = tf.identity(read * 1, "before")
            self.rows = look_up(self.ids, self.before)
            call = next(op for op in graph.get_operations() if op.type.endswith("PartitionedCall"))
            with tf.control_dependencies([call]):
                doubled = self.seen.assign(self.seen.read_value() * 2, read_value=False)
            with tf.control_dependencies([doubled]):
                self.after = tf.identity(self.seen.read_value(), "after")


class TestAnotherModel:
    """A plan is for one model, also where another one has functions of the same names."""

    @pytest.mark.parametrize("change", ["a constant", "an op", "its inputs"])
    def test_is_refused(self, change: str, graph: tf.Graph, tmp_path: Path) -> None:
        of_module(tmp_path)
        plan = wb.plan_fusion(tmp_path, signature="serving_default")
        with loaded(tmp_path) as (_, meta):
            definition = meta.graph_def
        change_function(definition.library, change)
        with graph.as_default():
            tf.import_graph_def(definition, name="")
        with pytest.raises(PlanError, match=r"function '.*' is another one: .*plan again"):
            wb.apply(plan, graph=graph)
        with (
            v1.Session(graph=graph, config=wb.apply(plan)) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match=r"graph function '.*' has "),
        ):
            session.run(*ends_of(meta))


def change_function(library: Any, change: str) -> None:
    (function,) = (f for f in library.function if any(node.op == "Mul" for node in f.node_def))
    (product,) = (node for node in function.node_def if node.op == "Mul")
    if change == "a constant":
        constant = next(n for n in function.node_def if n.name == product.input[1].split(":")[0])
        constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(3)))
    elif change == "an op":
        product.op = "AddV2"
    else:
        product.input[:] = reversed(product.input)


class TestCallsThatStay:
    @pytest.mark.parametrize("why", ["compiled", "branch", "state", "refused lookups"])
    def test_say_why(self, why: str, tmp_path: Path) -> None:
        model = Model(2)
        ids = [spec("c0"), spec("c1")]

        def branch(ids: Any) -> tf.Tensor:
            return tf.cond(tf.size(ids[0]) > 0, lambda: model.found(ids), lambda: tf.zeros([0, 16]))

        def shards(ids: Any) -> tf.Tensor:
            return tf.nn.embedding_lookup_sparse(
                model.tables, tf.sparse.from_dense(ids[0][:, None]), None
            )

        made = {
            "compiled": tf.function(model.found, jit_compile=True, input_signature=[ids]),
            "branch": tf.function(branch, input_signature=[ids]),
            "state": tf.function(with_own_state(model), input_signature=[ids]),
            "refused lookups": tf.function(shards, input_signature=[ids]),
        }[why]
        model.made = made
        save(tmp_path, model, serving_default=made)
        plan = wb.plan_fusion(tmp_path, signature="serving_default")
        assert not plan.of("lookup")
        assert plan.refusals
        text = {"refused lookups": "shards", "branch": "no plan reaches"}.get(
            why, "wb.fuse_function"
        )
        assert any(text in each.reason for each in plan.refusals), plan.describe()
        results = []
        for config in (None, wb.apply(plan)):
            with contextlib.ExitStack() as stack:
                session, meta = stack.enter_context(loaded(tmp_path, config))
                results.append(session.run(*ends_of(meta)))
        alike(*results)


def with_own_state(model: Model) -> Any:
    def found(ids: Any) -> tf.Tensor:
        table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64)
        size = tf.raw_ops.LookupTableSizeV2(table_handle=table)
        return model.found(ids) + tf.cast(size, tf.float32)

    return found

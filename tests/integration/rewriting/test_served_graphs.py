"""Features that are fed apart: one op for a signature, stock's results for runs of a part."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

import workbench as wb
from tests.builders.saved_models import (
    TABLE,
    Served,
    build,
    fed,
    grouped,
    loaded,
    ran,
    save,
)
from workbench.errors import OptionError

v1 = tf.compat.v1
KINDS = ("safe", "safe_v2", "plain", "weighted", "dense", "gather", "mixed")
Run = tuple[Any, dict[Any, Any]]


def begun(config: Any = None, target: str = "") -> Any:
    session = v1.Session(target, config=config)
    session.run(v1.global_variables_initializer())
    return session


def require_alike(stock: Any, fused: Any) -> None:
    for one, other in zip(tf.nest.flatten(stock), tf.nest.flatten(fused), strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-6)


class TestASignature:
    def test_of_26_features_is_one_op_to_the_bit(self, tmp_path: Path) -> None:
        folder = tmp_path / "model"
        save(folder, "safe", 26)
        with loaded(folder) as (session, model):
            feeds = fed_by_names(model, 26)
            stock = session.run(outputs_of(model), feeds)
            alone = wb.plan_fusion(session.graph)
            plan = wb.plan_fusion(model, signature="serving_default")
        assert len({each.op for each in alone.of("lookup")}) == 26
        assert len(plan.of("lookup")) == 26
        assert len({each.op for each in plan.of("lookup")}) == 1, plan.describe()
        with loaded(folder, wb.apply(plan)) as (session, model):
            values, ops = ran(session, outputs_of(model), feeds)
        assert grouped(ops) == 1
        assert not any(op.startswith(("SparseSegment", "ResourceGather")) for op in ops)
        for name, value in stock.items():
            assert value.tobytes() == values[name].tobytes()

    @pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
    def test_by_its_definition_is_the_same_plan(self, tmp_path: Path, resource: bool) -> None:
        folder = tmp_path / "model"
        save(folder, "mixed", 5, resource=resource)
        with loaded(folder) as (session, model):
            by_name = wb.plan_fusion(model, signature="serving_default")
            signature = model.signature_def["serving_default"]
            by_value = wb.plan_fusion(session.graph, signature=signature)
            fetches = [info.name for info in signature.outputs.values()]
            by_fetches = wb.plan_fusion(session.graph, fetches=fetches)
        assert by_name.count == 5
        for plan in (by_value, by_fetches):
            assert plan.fused == by_name.fused
            assert plan.groups == by_name.groups

    def test_with_a_sparse_output(self, graph: tf.Graph) -> None:
        served = build("safe", 3)
        sparse = tf.sparse.from_dense(served.scores)
        info = v1.saved_model.build_tensor_info(sparse)
        signature = v1.saved_model.build_signature_def(outputs={"scores": info})
        plan = wb.plan_fusion(graph, signature=signature)
        assert len({each.op for each in plan.of("lookup")}) == 1


def outputs_of(model: Any) -> dict[str, str]:
    outputs = model.signature_def["serving_default"].outputs
    return {name: info.name for name, info in outputs.items()}


def fed_by_names(model: Any, features: int) -> dict[str, Any]:
    feeds: dict[str, Any] = {}
    for k in range(features):
        names = model.signature_def["serving_default"].inputs[f"c{k}"].coo_sparse
        # Of one row each, which no combiner rounds.
        value = fed(None, k, [1, 0, 1])
        feeds[names.indices_tensor_name] = value.indices
        feeds[names.values_tensor_name] = value.values
        feeds[names.dense_shape_tensor_name] = value.dense_shape
    return feeds


class TestRuns:
    @pytest.mark.parametrize("joined", [False, True], ids=["apart", "joined"])
    @pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
    @pytest.mark.parametrize("kind", KINDS)
    def test_of_any_part_give_what_stock_does(
        self, graph: tf.Graph, kind: str, resource: bool, joined: bool
    ) -> None:
        served = build(kind, 5, resource=resource, joined=joined)
        plan = wb.plan_fusion(graph, fetches=served.scores)
        assert len({each.op for each in plan.of("lookup")}) == 1, plan.describe()
        runs = [run(served) for run in RUNS.values()]
        with begun() as session:
            stock = [session.run(*run) for run in runs]
        with begun(wb.apply(plan)) as session:
            found, counts = zip(*(ran(session, *run) for run in runs), strict=True)
        require_alike(stock, found)
        assert [grouped(ops) for ops in counts] == [name in WHOLE for name in RUNS]

    def test_are_verified(self, graph: tf.Graph) -> None:
        served = build("safe", 3)
        plan = wb.plan_fusion(graph, fetches=served.scores)
        with begun(wb.apply(plan)) as session:
            verification = plan.verify(session, served.feeds())
        assert verification.right, verification.describe()
        assert not verification.of("not verified"), verification.describe()

    def test_on_a_server(self, graph: tf.Graph) -> None:
        served = build("safe", 4)
        plan = wb.plan_fusion(graph, fetches=served.scores)
        runs = [run(served) for run in RUNS.values()]
        target = v1.train.Server.create_local_server().target
        results = []
        for config in (None, wb.apply(plan)):
            with begun(config, target) as session:
                results.append([session.run(*run) for run in runs])
        require_alike(*results)

    def test_of_a_callable_and_of_a_partial_run(self, graph: tf.Graph) -> None:
        served = build("dense", 3)
        feeds = served.feeds()
        results = []
        for config in (None, wb.apply(wb.plan_fusion(graph, fetches=served.scores))):
            with begun(config) as session:
                whole = session.make_callable(served.scores, list(feeds))(*feeds.values())
                part = session.make_callable(served.embeddings[1], [served.inputs["c1"]])
                handle = session.partial_run_setup([served.scores], list(feeds))
                at_once = session.partial_run(handle, served.scores, feeds)
                results.append([whole, part(feeds[served.inputs["c1"]]), at_once])
        require_alike(*results)

    @pytest.mark.parametrize("kind", ["safe", "weighted", "mixed"])
    def test_that_are_partial_fetch_as_feeds_come(self, graph: tf.Graph, kind: str) -> None:
        served = build(kind, 3, joined=False)
        inputs = list(served.inputs.values())
        results, wholes = [], []
        for config in (None, wb.apply(wb.plan_fusion(graph, fetches=served.scores))):
            with begun(config) as session:
                orders = itertools.permutations(range(3))
                found = [_in_parts(session, served, order) for order in orders]
                last = served.embeddings[2]
                handle = session.partial_run_setup([last, served.scores], inputs)
                found.append(session.partial_run(handle, last, served.feeds(2)))
                with pytest.raises(tf.errors.InvalidArgumentError, match="can't be computed"):
                    session.partial_run(handle, served.scores, served.feeds(1))
                # Other runs of the session stay as they were.
                handle = session.partial_run_setup([served.scores], inputs)
                at_once = session.partial_run(handle, served.scores, served.feeds())
                whole, ops = ran(session, served.scores, served.feeds())
            assert grouped(ops) == (config is not None)
            results.append(found)
            wholes.append([at_once, whole])
        require_alike(*wholes)
        for one, other in zip(*map(tf.nest.flatten, results), strict=True):
            assert one.tobytes() == other.tobytes()

    def test_on_a_server_that_could_be_partial_are_not_fused(self, graph: tf.Graph) -> None:
        served = build("dense", 3)
        config = wb.apply(wb.plan_fusion(graph, fetches=served.scores))
        with begun(config, v1.train.Server.create_local_server().target) as session:
            early = [served.embeddings[0], served.scores]
            for fetches, fused in ((early, 0), (served.scores, 1)):
                assert grouped(ran(session, fetches, served.feeds())[1]) == fused

    def test_whose_callable_connects_a_tensor_give_what_stock_does(self, graph: tf.Graph) -> None:
        served = build("safe", 2, joined=False)
        plan = wb.plan_fusion(graph, fetches=served.scores)
        feeds = _flat(served)
        with begun() as session:
            values = {
                tensor: session.run(tensor, feeds)
                for op in graph.get_operations()
                if op.inputs and op.name.startswith("embedding_lookup")
                for tensor in op.outputs
                if tensor.dtype == tf.float32 and tensor.shape.ndims == 2
            }
        assert values
        sources = {tensor: tf.constant(value + 1) for tensor, value in values.items()}
        results = []
        for config in (None, wb.apply(plan)):
            with begun(config) as session:
                results.append(
                    [
                        _connected(session, source, tensor, served.scores, feeds)
                        for tensor, source in sources.items()
                    ]
                )
        require_alike(*results)

    def test_that_lack_a_feed_fail_as_stock_ones(self, graph: tf.Graph) -> None:
        served = build("safe", 3)
        for config in (None, wb.apply(wb.plan_fusion(graph, fetches=served.scores))):
            lacking = "You must feed a value for placeholder tensor 'c1/"
            with (
                begun(config) as session,
                pytest.raises(tf.errors.InvalidArgumentError, match=lacking),
            ):
                session.run(served.scores, served.feeds(0, 2))


def _in_parts(session: Any, served: Served, order: Iterable[int]) -> list[Any]:
    """A partial run that fetches each embedding as soon as its feature is fed."""
    fetches = [*served.embeddings, served.scores]
    handle = session.partial_run_setup(fetches, list(served.inputs.values()))
    found = [session.partial_run(handle, fetches[k], served.feeds(k)) for k in order]
    return [*found, session.partial_run(handle, served.scores)]


def _flat(served: Served) -> dict[Any, Any]:
    """What all placeholders are fed."""
    feeds: dict[Any, Any] = {}
    for given, value in served.feeds().items():
        parts = [value] if isinstance(given, tf.Tensor) else list(value)
        feeds |= zip(tf.nest.flatten(given, expand_composites=True), parts, strict=True)
    return feeds


def _connected(session: Any, source: Any, tensor: Any, fetched: Any, feeds: dict[Any, Any]) -> Any:
    """What a callable gives that reads one tensor of the graph in the place of another one."""
    options = config_pb2.CallableOptions()
    options.feed.extend(each.name for each in feeds)
    options.fetch.append(fetched.name)
    options.tensor_connection.add(from_tensor=source.name, to_tensor=tensor.name)
    return session._make_callable_from_options(options)(*feeds.values())[0]


# What runs fetch and feed; those of the first names need all features.
RUNS: dict[str, Callable[[Served], Run]] = {
    "all": lambda m: (m.scores, m.feeds()),
    "all with what is before": lambda m: ([m.scores, m.hidden], m.feeds()),
    "what is before": lambda m: (m.hidden, m.feeds()),
    "an embedding": lambda m: (m.embeddings[1], m.feeds(1)),
    "an embedding, all fed": lambda m: (m.embeddings[1], m.feeds()),
    "two embeddings": lambda m: ([m.embeddings[0], m.embeddings[2]], m.feeds(0, 2)),
    "an embedding fed": lambda m: (m.scores, m.feeds(0, 2, 3, *_rest(m)) | _given(m)),
    "an embedding fed, another one fetched": lambda m: (m.embeddings[0], m.feeds(0) | _given(m)),
    "what is before fed": lambda m: (m.scores, {m.hidden: np.ones((3, m.hidden.shape[1] or 1))}),
}
WHOLE = ("all", "all with what is before", "what is before")


def _rest(served: Served) -> range:
    return range(4, len(served.embeddings))


def _given(served: Served) -> dict[Any, Any]:
    return {served.embeddings[1]: np.full((3, TABLE.shape[1]), 0.5)}


class TestFetches:
    def test_that_need_different_features_have_an_op_each(self, graph: tf.Graph) -> None:
        served = build("safe", 6, joined=False)
        both = tf.add_n(served.embeddings[:4], name="both")
        one = tf.add_n(served.embeddings[2:], name="one")
        plan = wb.plan_fusion(graph, fetches={"a": both, "b": [one]})
        ops = [each.op for each in plan.of("lookup")]
        assert [ops.index(op) for op in ops] == [0, 0, 2, 2, 4, 4]
        with begun(wb.apply(plan)) as session:
            for fetched, features, count in ((both, range(4), 2), (one, range(2, 6), 2)):
                values, kinds = ran(session, fetched, served.feeds(*features))
                assert grouped(kinds) == count
                with begun() as stock:
                    require_alike(stock.run(fetched, served.feeds(*features)), values)

    def test_leave_what_they_do_not_need_as_it_was(self, graph: tf.Graph) -> None:
        served = build("safe", 4, joined=False)
        total = tf.add_n(served.embeddings[:2])
        plan = wb.plan_fusion(graph, fetches=[total.op, total.name])
        assert len({each.op for each in plan.of("lookup")}) == 3

    def test_of_a_training_step_are_one_op_each_way(self, graph: tf.Graph) -> None:
        served = build("safe", 3, joined=False)
        label = v1.placeholder(tf.float32, [None], name="label")
        loss = tf.reduce_mean(tf.square(served.scores - label))
        train_op = v1.train.AdagradOptimizer(0.1).minimize(loss)
        plan = wb.plan_fusion(graph, fetches=[train_op, loss])
        assert len({each.op for each in plan.of("lookup")}) == 1
        assert [each.updates for each in plan.of("lookup")] == [True] * 3
        assert len(plan.groups) >= 1
        update = next(group for group in plan.groups if "update" in group.op)
        results = []
        for config in (None, wb.apply(plan)):
            with begun(config) as session:
                feeds = {**served.feeds(), label: np.ones(3)}
                losses = [session.run([train_op, loss], feeds)[1] for _ in range(3)]
                # One table alone, as a run may ask for it.
                session.run(graph.get_operation_by_name(update.members[0]), feeds)
                results.append([losses, session.run(v1.global_variables())])
        for one, other in zip(*map(tf.nest.flatten, results), strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4)

    def test_of_texts_hash_them_in_one_op(self, graph: tf.Graph) -> None:
        texts = [v1.placeholder(tf.string, [None, 1], name=f"text{k}") for k in range(3)]
        totals = []
        for k, text in enumerate(texts):
            at = tf.where(tf.not_equal(text, ""))
            ids = tf.strings.to_hash_bucket_fast(tf.gather_nd(text, at), 50)
            sparse = tf.SparseTensor(at, ids, tf.shape(text, tf.int64))
            table = v1.get_variable(f"t{k}", initializer=TABLE)
            totals.append(v1.nn.safe_embedding_lookup_sparse(table, sparse))
        scores = tf.add_n(totals)
        plan = wb.plan_fusion(graph, fetches=scores)
        assert len({each.op for each in plan.of("lookup")}) == 1
        assert "3 columns of text hashed together" in plan.describe()
        feeds = {text: [[f"a{k}"], [""], ["b"]] for k, text in enumerate(texts)}
        part = totals[1], {texts[1]: feeds[texts[1]]}
        results = []
        for config in (None, wb.apply(plan)):
            with begun(config) as session:
                results.append([session.run(scores, feeds), session.run(*part)])
        require_alike(*results)


class TestRefused:
    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ({"fetches": "nothing:0"}, "fetches has 'nothing', which the graph does not have"),
            ({"fetches": []}, r"fetches is \[\]; expected what runs fetch"),
            ({"fetches": [7]}, "fetches has 7 of type int; expected tensors, ops or names"),
            ({"signature": "serving_default"}, "signature is the name 'serving_default', and a"),
            ({"signature": 7}, "signature is 7 of type int; expected the name of a signature"),
            ({"fetches": "scores:0", "signature": "s"}, "both given; give one of them"),
        ],
    )
    def test_of_a_graph(self, graph: tf.Graph, given: dict[str, Any], message: str) -> None:
        build("dense", 2)
        with pytest.raises(OptionError, match=message):
            wb.plan_fusion(graph, **given)

    def test_a_tensor_of_another_graph(self, graph: tf.Graph) -> None:
        build("dense", 2)
        with tf.Graph().as_default():
            other = tf.zeros([], name="scores")
        with pytest.raises(OptionError, match="fetches has 'scores:0' of another graph"):
            wb.plan_fusion(graph, fetches=other)

    def test_a_signature_that_is_not_there(self, tmp_path: Path) -> None:
        save(tmp_path / "model", "dense", 2)
        with (
            loaded(tmp_path / "model") as (_, model),
            pytest.raises(OptionError, match="no signature 'other'; it has 'serving_default'"),
        ):
            wb.plan_fusion(model, signature="other")

    def test_a_signature_without_outputs(self, graph: tf.Graph) -> None:
        build("dense", 2)
        empty = v1.saved_model.build_signature_def()
        with pytest.raises(OptionError, match="has no outputs, so no run fetches it"):
            wb.plan_fusion(graph, signature=empty)

    def test_a_function_runs_as_a_whole(self) -> None:
        function = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([2]))
        with pytest.raises(OptionError, match="a function always runs as a whole"):
            wb.plan_fusion(function, fetches="Identity:0")

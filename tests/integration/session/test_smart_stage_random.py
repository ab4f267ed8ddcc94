"""Generated graphs: a rewritten session gives what the plain one gives, fetch by fetch.

Each example is a recipe: a list of choices that build a graph over two input tensors, with
variables that steps change, state of other kinds, control edges and control flow. The same graph
then runs in two sessions, one with a plan, and the same fetches are made in both.
"""

from __future__ import annotations

import dataclasses
import os

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from workbench.core import smart_stage
from workbench.core.boundary.candidates import candidates_of
from workbench.core.options import SmartStageOptions
from workbench.core.planning.planner import plan_of
from workbench.core.session.prefetch_hook import prefetching
from workbench.core.session.staged import staged
from workbench.errors import NoInputError

v1 = tf.compat.v1
EXAMPLES = int(os.environ.get("WORKBENCH_RANDOM_GRAPHS", "12"))
KINDS = (
    *("add", "multiply", "tanh", "floor", "sort", "split", "unique", "constant", "stateless"),
    *("random", "read", "read_resource", "assign", "assign_resource", "placeholder", "cond"),
    *("while", "function", "function_with_state", "check", "table", "lookup", "insert", "print"),
    *("group", "after", "map", "shape"),
)
PURE = ("add", "multiply", "sort", "split", "unique", "stateless", "table", "shape", "map", "check")


@dataclasses.dataclass(frozen=True)
class Choice:
    kind: str
    a: int
    b: int
    c: int


def choices(kinds: tuple[str, ...]) -> st.SearchStrategy[Choice]:
    number = st.integers(0, 99)
    return st.builds(Choice, kind=st.sampled_from(kinds), a=number, b=number, c=number)


# Something to move first, then anything, so that most examples have both sides.
recipes = st.tuples(
    st.lists(choices(PURE), max_size=5), st.lists(choices(KINDS), min_size=1, max_size=10)
).map(lambda parts: [*parts[0], *parts[1], Choice("read", 99, 0, 0)])


class Recipe:
    """Builds the graph of a list of choices; keeps float tensors [4], and operations."""

    def __init__(self, source: str, own_stage: bool, steps: list[Choice]) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default():
            v1.set_random_seed(7)
            self.initializers: list[tf.Operation] = []
            self.variable = v1.get_variable(
                "w", [4], initializer=tf.ones_initializer(), use_resource=False
            )
            self.resource = v1.get_variable(
                "r", [4], initializer=tf.ones_initializer(), use_resource=True
            )
            first, second = self._input(source)
            if own_stage:
                first, second = staged([first, second])
            self.source = first
            self.tensors = [first, second]
            self.operations: list[tf.Operation] = []
            self.touched: dict[str, tuple[list, list]] = {}
            self.mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
            self.fixed = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    tf.constant([1, 2, 3], tf.int64), tf.constant([0.1, 0.2, 0.3])
                ),
                -1.0,
            )
            for number, choice in enumerate(steps):
                made = getattr(self, f"_{choice.kind}")(choice, number)
                for each in made if isinstance(made, (list, tuple)) else [made]:
                    (self.tensors if tf.is_tensor(each) else self.operations).append(each)
            self.initializers += [
                v1.global_variables_initializer(),
                v1.tables_initializer(),
            ]

    def pick(self, number: int) -> tf.Tensor:
        return self.tensors[-1 if number == 99 else number % len(self.tensors)]

    def _input(self, source: str) -> tuple[tf.Tensor, tf.Tensor]:
        if source == "iterator":
            data = tf.data.Dataset.range(10_000).map(
                lambda i: (
                    tf.cast(tf.range(4, dtype=tf.int64) + i, tf.float32),
                    tf.cast(tf.range(4, dtype=tf.int64) * i, tf.float32),
                )
            )
            iterator = v1.data.make_initializable_iterator(data)
            self.initializers.append(iterator.initializer)
            return iterator.get_next()
        queue = v1.FIFOQueue(500, [tf.float32, tf.float32], shapes=[[4], [4]])
        values = np.arange(400, dtype=np.float32).reshape(100, 4)
        self.initializers.append(queue.enqueue_many([values, values * 2]))
        return queue.dequeue()

    def _add(self, c, n):
        return self.pick(c.a) + self.pick(c.b)

    def _multiply(self, c, n):
        return self.pick(c.a) * self.pick(c.b) / 7.0

    def _tanh(self, c, n):
        return tf.tanh(self.pick(c.a))

    def _floor(self, c, n):
        return tf.floor(self.pick(c.a))

    def _sort(self, c, n):
        return tf.sort(self.pick(c.a))

    def _split(self, c, n):
        low, high = tf.split(self.pick(c.a), 2)
        return [tf.concat([low, low], 0), tf.concat([high, self.pick(c.b)[:2]], 0)]

    def _unique(self, c, n):
        found, where = tf.unique(self.pick(c.a))
        return tf.gather(found, where) + tf.cast(where, tf.float32)

    def _constant(self, c, n):
        return tf.fill([4], float(c.a))

    def _stateless(self, c, n):
        seed = tf.cast(self.pick(c.a)[:2], tf.int32)
        return tf.random.stateless_uniform([4], seed)

    def _random(self, c, n):
        with tf.control_dependencies([self.pick(c.a)] if c.c % 2 else []):
            return tf.random.uniform([4], seed=c.b + 1)

    def _touch(self, state, make, writes=False):
        """Makes an op that reads or changes some state, in the order of the recipe.

        Without an order two runs of one session may differ already.
        """
        readers, writer = self.touched.setdefault(state, ([], []))
        with tf.control_dependencies([*writer, *(readers if writes else [])]):
            made = make()
        op = made.op if tf.is_tensor(made) else made
        if writes:
            self.touched[state] = ([], [op])
        else:
            readers.append(op)
        return op if writes else made

    def _read(self, c, n):
        # The variable's memory itself, read by this op.
        return self._touch("w", lambda: tf.add(self.variable._ref(), self.pick(c.a)))

    def _read_resource(self, c, n):
        return self._touch("r", lambda: self.pick(c.a) * self.resource.read_value())

    def _assign(self, c, n):
        change = self.pick(c.a) / 100.0
        return self._touch("w", lambda: v1.assign_add(self.variable, change).op, writes=True)

    def _assign_resource(self, c, n):
        change = self.pick(c.a) / 100.0
        return self._touch(
            "r", lambda: self.resource.assign_add(change, read_value=False), writes=True
        )

    def _lookup(self, c, n):
        keys = tf.cast(self.pick(c.a), tf.int64)
        return self._touch("table", lambda: self.mutable.lookup(keys))

    def _insert(self, c, n):
        keys = tf.cast(self.pick(c.a), tf.int64)
        values = tf.cast(keys, tf.float32)
        return self._touch("table", lambda: self.mutable.insert(keys, values), writes=True)

    def _placeholder(self, c, n):
        return self.pick(c.a) + v1.placeholder_with_default([0.5, 1.0, 1.5, 2.0], [4])

    def _cond(self, c, n):
        x, y = self.pick(c.a), self.pick(c.b)
        return v1.cond(x[0] > y[0], lambda: x + 1.0, lambda: y - 1.0)

    def _while(self, c, n):
        x = self.pick(c.a)
        return v1.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, v * 0.5), [0, x])[1]

    def _map(self, c, n):
        return tf.map_fn(lambda v: v * 0.5, self.pick(c.a))

    def _function(self, c, n):
        @tf.function
        def inside(x):
            if x[0] > 2.0:
                return x * 3.0
            return x - 1.0

        return tf.ensure_shape(inside(self.pick(c.a)), [4])

    def _function_with_state(self, c, n):
        @tf.function(autograph=False)
        def inside(x):
            return x + tf.random.uniform([4], seed=5)

        return tf.ensure_shape(inside(self.pick(c.a)), [4])

    def _check(self, c, n):
        ok = v1.Assert(tf.reduce_all(self.pick(c.a) > -1e30), [self.pick(c.a)])
        with tf.control_dependencies([ok]):
            return tf.identity(self.pick(c.b))

    def _table(self, c, n):
        return self.fixed.lookup(tf.cast(self.pick(c.a), tf.int64))

    def _print(self, c, n):
        return v1.Print(self.pick(c.a), [], first_n=0)

    def _group(self, c, n):
        return tf.group(self.pick(c.a), self.pick(c.b))

    def _after(self, c, n):
        with tf.control_dependencies(
            [self.operations[c.b % len(self.operations)]] if self.operations else []
        ):
            return tf.identity(self.pick(c.a))

    def _shape(self, c, n):
        return tf.cast(tf.shape(self.pick(c.a))[0], tf.float32) + tf.zeros([4])


def run(recipe: Recipe, config, fetches) -> list:
    found = []
    with v1.Session(graph=recipe.graph, config=config) as session:
        for initializer in recipe.initializers:
            session.run(initializer)
        with prefetching(session):
            for wanted in fetches:
                found.append(session.run(wanted))
            found.append(session.run(recipe.source))
    return found


def one_thread() -> v1.ConfigProto:
    """State is then read and changed in the same order in both sessions.

    Grappler regroups sums, differently in the whole graph and in its parts: it is off.
    """
    config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


@pytest.mark.timeout(3600)
@hypothesis.settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    # Explaining a failure takes minutes and says nothing that the recipe does not.
    phases=[phase for phase in hypothesis.Phase if phase is not hypothesis.Phase.explain],
)
@hypothesis.given(
    source=st.sampled_from(["iterator", "queue"]),
    own_stage=st.booleans(),
    steps=recipes,
    marked=st.lists(st.integers(0, 99), max_size=2),
    wanted=st.lists(
        st.lists(st.tuples(st.booleans(), st.integers(0, 99)), min_size=1, max_size=3),
        min_size=1,
        max_size=5,
    ),
    way=st.integers(0, 99),
)
def test_a_rewritten_session_gives_what_the_plain_one_gives(
    source, own_stage, steps, marked, wanted, way
):
    recipe = Recipe(source, own_stage, steps)
    with recipe.graph.as_default():
        targets = [recipe.pick(number) for number in marked]
        fetches = [
            [
                recipe.operations[number % len(recipe.operations)]
                if is_operation and recipe.operations
                else recipe.pick(number)
                for is_operation, number in step
            ]
            for step in wanted
        ]
        # Targets bound what a step may run; all that is fetched here must lie within.
        targets = [*targets, *(each for step in fetches for each in step)] if targets else []
    before = recipe.graph.as_graph_def().SerializeToString(deterministic=True)
    try:
        boundary = smart_stage.find_boundary(recipe.graph, targets)
    except NoInputError:
        hypothesis.assume(False)
    options = SmartStageOptions()
    (side,) = boundary.sides
    others = [a for a in candidates_of(boundary, side, options, cores=2) if not a.removes_own]
    chosen = [None, *others][way % (len(others) + 1)]
    plan = smart_stage.plan(boundary) if chosen is None else plan_of(boundary, [chosen], options)
    hypothesis.event(f"{len(plan.stages)} stages, widened {any(s.widens for s in plan.stages)}")
    config = smart_stage.apply(plan, one_thread(), graph=recipe.graph)
    expected = run(recipe, one_thread(), fetches)
    found = run(recipe, config, fetches)
    assert recipe.graph.as_graph_def().SerializeToString(deterministic=True) == before
    for step, (want, got) in enumerate(zip(expected, found, strict=True)):
        for one, other in zip(want, got, strict=True) if isinstance(want, list) else [(want, got)]:
            if one is None:
                assert other is None
            else:
                np.testing.assert_array_equal(one, other, err_msg=f"step {step}\n{plan.describe()}")

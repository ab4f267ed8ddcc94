"""Runs of a Program → steps that name what they fetch and feed, none of which races."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests.fuzz import data
from tests.fuzz.built import Built
from tests.fuzz.program import Run
from tests.fuzz.races import Order

v1 = tf.compat.v1
_LIMIT = "limit:0"
_ENTERS = frozenset({"Switch", "RefSwitch", "Enter", "RefEnter"})
_LEAVES = frozenset({"Merge", "RefMerge", "Exit", "RefExit"})


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One run of a session.

    Attributes:
      run: the number of the program's run that it belongs to.
      what: in words.
      how: "run", "callable" or "partial".
      fetches: names of tensors and operations.
      feeds: values by names of tensors.
      fed: the tensor in the graph that is fed; "" where only inputs are.
    """

    run: int
    what: str
    how: str
    fetches: tuple[str, ...]
    feeds: Mapping[str, Any]
    fed: str = ""


class Chooser:
    """Chooses what the runs of a program fetch and feed.

    Args:
      built: the graph of the program.
      config: of stock sessions, in which tensors are looked at to learn their shapes.
    """

    def __init__(self, built: Built, config: Any) -> None:
        self._built, self._graph = built, built.graph
        self.order = Order(built.graph)
        self._config = config
        self._tick = 0
        ends = [built.train, *built.losses, *built.metrics]
        executed = self.order.executed(ends, ())
        outside = [op for op in built.graph.get_operations() if op in executed]
        inside = _in_control_flow(built.graph)
        known = {op.name for op in outside if op.name not in inside}
        self._ops = [op.name for op in outside if op.name in known and _is_fetchable(op)]
        tensors = [tensor for op in outside if op.name in known for tensor in op.outputs]
        self._fetchable = [
            tensor.name
            for tensor in tensors
            if _is_plain(tensor, strings=True) and _is_fetchable(tensor)
        ]
        self._feedable = [
            tensor.name
            for tensor in tensors
            if _is_plain(tensor) and _is_fetchable(tensor) and built.graph.is_feedable(tensor)
        ]
        self.raced = 0

    def steps(self) -> tuple[tuple[Run, ...], list[Step]]:
        """The program's runs with names for their picks, and the steps of all of them."""
        named, steps = [], []
        with v1.Session(graph=self._graph, config=self._config) as looking:
            for name in self._built.begin:
                looking.run(name)
            for number, run in enumerate(self._built.program.runs):
                run = self._named(run)
                named.append(run)
                steps += self._steps(number, run, looking)
        return tuple(named), steps

    def _named(self, run: Run) -> Run:
        """A run whose picks have become names."""
        if run.fetched:
            return run
        built, random = self._built, np.random.RandomState(run.picks)
        fed, fetched = "", []
        if run.what == "feed":
            fed = self._to_feed(random)
            behind = self.order.behind(fed)
            fetched = [
                name for name in (*built.losses, *built.metrics) if name.split(":")[0] in behind
            ]
            after = [name for name in self._fetchable if name.split(":")[0] in behind]
            fetched += _some(random, after, 2)
            if not fetched:
                fetched = [built.train]
        elif run.what == "fetch":
            fetched = _some(random, self._fetchable, 2) + _some(random, self._ops, 1)
        elif run.what == "metric":
            fetched = _some(random, built.metrics or built.losses, 1)
        else:
            fetched = [*built.losses]
        if run.trains or run.what == "train":
            fetched.insert(0, built.train)
        return dataclasses.replace(run, fetched=tuple(dict.fromkeys(fetched)), fed=fed)

    def _to_feed(self, random: Any) -> str:
        built = self._built
        kinds = tuple(f"{part.name}/" for part in built.program.parts)
        within = [name for name in self._feedable if name.startswith((*kinds, "in_", "ids_"))]
        computed = [
            name for name in within if self._graph.get_tensor_by_name(name).op.type != "Const"
        ]
        groups = [group for group in (computed, computed, computed, within) if group]
        chosen = groups[random.randint(len(groups))] if groups and random.rand() < 0.8 else []
        return _some(random, chosen or self._feedable, 1)[0]

    def _steps(self, number: int, run: Run, looking: Any) -> Iterator[Step]:
        known = {op.name for op in self._graph.get_operations()}
        for repeat in range(2 if run.what == "train" else 1):
            fetches = [name for name in run.fetched if name.split(":")[0] in known]
            feeds = self._inputs(run)
            if run.what == "feed":
                if run.fed.split(":")[0] not in known:
                    return
                feeds = {**feeds, run.fed: self._fed_value(run, feeds, looking)}
                if feeds[run.fed] is None:
                    return
            if run.what == "fail":
                feeds = {**feeds, **self._failing(run)}
            fetches = self._ordered(fetches, tuple(feeds))
            if not fetches:
                self.raced += 1
                return
            executed = self.order.executed(fetches, feeds)
            needed = {tensor.name for op in executed for tensor in op.inputs} | set(fetches)
            feeds = {name: value for name, value in feeds.items() if name in needed}
            yield Step(
                run=number,
                what=f"run {number}.{repeat}: {run.what}",
                how=run.how,
                fetches=tuple(fetches),
                feeds=feeds,
                fed=run.fed,
            )

    def _ordered(self, fetches: list[str], feeds: Sequence[str]) -> list[str]:
        """The fetches, as many as give the same whatever the schedule."""
        kept: list[str] = []
        for name in fetches:
            if not self.order.racing([*kept, name], feeds):
                kept.append(name)
        return kept

    def _inputs(self, run: Run) -> dict[str, Any]:
        program = self._built.program
        self._tick += 1
        if not self._built.inputs or (program.source == "default" and run.picks[0] % 3 == 0):
            return {}
        return {f"{name}:0": value for name, value in data.given(program, self._tick).items()}

    def _failing(self, run: Run) -> dict[str, Any]:
        """What makes a run fail, where anything does."""
        names = [name for name in self._built.inputs if name.startswith("ids_")]
        values = data.given(self._built.program, 0)
        names = [name for name in names if values[name].dtype != object]
        names = [name for name in names if not name.endswith(("/indices", "/shape"))]
        if not names or run.picks[1] % 3:
            return {_LIMIT: np.int64(3)}
        name = names[run.picks[2] % len(names)]
        return {f"{name}:0": np.where(values[name] >= 0, 999, values[name])}

    def _fed_value(self, run: Run, feeds: dict[str, Any], looking: Any) -> Any:
        try:
            value = looking.run(run.fed, feeds)
        except tf.errors.OpError:
            return None
        random = np.random.RandomState(run.picks)
        if value.dtype.kind == "b":
            return ~value
        if value.dtype.kind == "f":
            return (value + random.normal(size=value.shape) * 0.5).astype(value.dtype)
        if value.size < 2:
            return value
        low, high = int(value.min()), int(value.max())
        if run.picks[1] % 2:
            return random.permutation(value.ravel()).reshape(value.shape)
        return random.randint(low, high + 1, value.shape).astype(value.dtype)


def _some(random: Any, names: Sequence[str], most: int) -> list[str]:
    count = min(most, len(names))
    return [names[at] for at in random.choice(len(names), count, replace=False)] if count else []


def _is_fetchable(each: Any) -> bool:
    return bool(each.graph.is_fetchable(each))


def _is_plain(tensor: tf.Tensor, strings: bool = False) -> bool:
    dtype = tensor.dtype.base_dtype
    return bool(
        dtype.is_floating or dtype.is_integer or dtype.is_bool or (strings and dtype == tf.string)
    )


def _in_control_flow(graph: tf.Graph) -> set[str]:
    """Names of the ops that run in a branch or a loop."""
    found: set[str] = set()
    for op in graph.get_operations():
        before = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
        if op.type in _ENTERS or (
            op.type not in _LEAVES and any(each.name in found for each in before)
        ):
            found.add(op.name)
    return found

"""Program: what a random program does, as a plain value that can be printed, edited and shrunk."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

# A number that is taken modulo how many there are.
ANY = tuple(range(8))
# What each part of a program may choose; the first option is the simplest one.
PARTS: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "lookup": {
        "table": ANY,
        "ids": ANY,
        "way": ("embedding_lookup", "gather", "read_value", "identity"),
        "behind": ("", "", "identity"),
        "trained": (True, True, False),
    },
    "sparse": {
        "table": ANY,
        "ids": ANY,
        "way": ("safe", "safe", "safe_v2", "plain"),
        "combiner": ("mean", "sum", "sqrtn"),
        "max_norm": (None, None, None, 0.7),
        "default_id": (None, None, 2),
        "weighted": (False, False, False, True),
        "behind": ("", "", "identity"),
        "trained": (True, True, True, False),
    },
    # An earlier lookup once more, for a metric: nothing trains it.
    "again": {"of": ANY},
    "join": {"how": ("concat", "stack"), "first": ANY, "count": (2, 3, 4), "behind": ("", "twice")},
    "dense": {
        "first": ANY,
        "count": (1, 2, 3, 8),
        "width": (32, 48, 8),
        "biased": (True, True, False),
        "then": ("relu", "none", "sigmoid"),
        "before": (False, True),
    },
    # What they read is made "before" what stands around them, or behind it.
    "norm": {
        "first": ANY,
        "relu": (False, True),
        "moving": (False, False, True),
        "before": (False, True),
    },
    "dot": {"first": ANY, "count": (3, 4, 2), "before": (False, True)},
    "fm": {
        "first": ANY,
        "count": (3, 4, 2),
        "square": ("square", "multiply"),
        "before": (False, True),
    },
    "identity": {"first": ANY},
    # An effect or a check that the next parts wait for.
    "around": {
        "what": ("assert", "count", "assign", "assign_add", "check_ids", "nothing"),
        "table": ANY,
        "length": (1, 2, 3, 6),
    },
    # A table changes behind all that has read it so far.
    "change": {"table": ANY, "how": ("assign", "assign_add", "scatter_update")},
    "cond": {"table": ANY, "ids": ANY, "inside": ("lookup", "lookup and count", "dense")},
    "while": {"table": ANY, "ids": ANY},
    # A loss of all that nothing else has read yet.
    "loss": {"how": ("distances", "cross entropy")},
    "metric": {"first": ANY, "how": ("mean", "max")},
}
OPTIMIZERS = ("descent", "adagrad", "adam", "ftrl", "momentum")
# Keras's, for functions.
KERAS_OPTIMIZERS = ("keras descent", "keras adagrad", "keras adam", "keras momentum")


@dataclasses.dataclass(frozen=True)
class Table:
    """A variable of `rows` × `dim` numbers."""

    rows: int
    dim: int
    dtype: str = "float32"
    resource: bool = True


@dataclasses.dataclass(frozen=True)
class Ids:
    """Ids of a feature, or words that are hashed into them.

    Attributes:
      form: "dense", "matrix" (sparse ids made of a matrix), "parts" (a SparseTensor that is given),
        "text" (hashed words).
      depth: most ids of an example; 0 of dense ids is one id, without an axis of its own.
      slow: whether they take a while to compute.
      behind: whether an Identity stands behind them.
    """

    form: str
    depth: int = 0
    dtype: str = "int64"
    slow: bool = False
    behind: bool = False


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a program: its kind, a number that names it, and what it chooses."""

    kind: str
    number: int
    choices: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.choices[name]

    @property
    def name(self) -> str:
        """The scope that its nodes stand in."""
        return f"{self.kind}_{self.number}"

    def __repr__(self) -> str:
        return f"Part({self.kind!r}, {self.number}, {dict(self.choices)})"


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of a session, or several alike.

    Attributes:
      what: "train", "fetch" (anything), "feed" (anything), "metric", "fail".
      how: "run", "callable" or "partial".
      picks: numbers that choose what is fetched and fed.
      trains: whether the train op runs along.
      fetched, fed: names, once they are chosen.
    """

    what: str
    how: str = "run"
    picks: tuple[int, ...] = ()
    trains: bool = False
    fetched: tuple[str, ...] = ()
    fed: str = ""


@dataclasses.dataclass(frozen=True)
class Edit:
    """A change of one choice of a part, for a graph that an older plan does not fit."""

    part: int
    name: str
    value: Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class Program:
    """A recommender and its runs.

    Attributes:
      seed: of all values.
      batch: examples of a batch; `known_batch`, whether the graph knows them.
      source: "default" (placeholders with a default), "placeholder" or "iterator".
      losses: "summed", or "own": each optimizer has a loss of its own.
      ordered: whether training waits for the metrics.
      clipped: whether gradients are clipped.
      grappler: whether TensorFlow optimizes the graph.
      threads: inter-op threads; 0 is TensorFlow's number.
      executor: a policy of Workbench's, or "".
      way: "graph", or how the graph is imported again: "graph_def", "meta_graph".
      control_v2: whether conds and loops are functions.
      outside: of a function: it gives losses alone, and a tape around it differentiates.
      edit: what changes in the graph that an old plan is tried with.
    """

    seed: int = 0
    batch: int = 4
    known_batch: bool = False
    source: str = "default"
    tables: tuple[Table, ...] = (Table(10, 4),)
    ids: tuple[Ids, ...] = (Ids("dense"),)
    parts: tuple[Part, ...] = ()
    optimizers: tuple[str, ...] = ("descent",)
    losses: str = "summed"
    ordered: bool = False
    clipped: bool = False
    grappler: bool = False
    threads: int = 0
    executor: str = ""
    way: str = "graph"
    control_v2: bool = True
    outside: bool = False
    runs: tuple[Run, ...] = ()
    edit: Edit | None = None

    @property
    def is_ref(self) -> bool:
        """Whether it has a ref variable."""
        return not all(table.resource for table in self.tables)

    @property
    def is_half(self) -> bool:
        """Whether it has numbers of less than float32's digits."""
        return any(table.dtype == "float16" for table in self.tables)

    def edited(self) -> Program:
        """The program with its edit made."""
        assert self.edit is not None
        edit, parts = self.edit, list(self.parts)
        for at, part in enumerate(parts):
            if part.number == edit.part:
                parts[at] = Part(part.kind, part.number, {**part.choices, edit.name: edit.value})
        return dataclasses.replace(self, parts=tuple(parts), edit=None)

    def lines(self) -> Iterator[str]:
        """What differs from the simplest program, a line for each fact."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name in ("parts", "tables", "ids", "runs"):
                yield from (f"{field.name}: {in_short(each)}" for each in value)
            elif value != field.default or field.name == "seed":
                yield f"{field.name}={value!r}"


def in_short(value: Any) -> str:
    """A part, a table, ids or a run, without what is the simplest there is."""
    if isinstance(value, Part):
        chosen = value.choices.items()
        simplest = PARTS[value.kind]
        words = [f"{name}={each!r}" for name, each in chosen if each != simplest[name][0]]
        return f"{value.name}({', '.join(words)})"
    words = [
        f"{field.name}={getattr(value, field.name)!r}"
        for field in dataclasses.fields(value)
        if getattr(value, field.name) != field.default and field.name != "picks"
    ]
    return f"{type(value).__name__}({', '.join(words)})"

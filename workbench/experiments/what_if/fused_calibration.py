"""What ops of a finished graph that is fused cost here: measured once, then kept."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from workbench._native import library_path
from workbench.core.optimizations import AUTO, FUSIONS, Optimizations
from workbench.core.what_if.costs.fused_costs import FusedCosts, LookupLoad, Sample, fitted
from workbench.errors import OutputError
from workbench.experiments.comparison.environment import machine
from workbench.experiments.program.program import Built
from workbench.experiments.what_if.stock_times import medians, times_of_stock, traced
from workbench.files.atomic_file import make_directory, replacing
from workbench.files.user_cache import user_cache

if TYPE_CHECKING:
    import tensorflow as tf

_FORMAT = 9
# Sizes of a lookup: ids in a batch and for each row of it, rows and width of the table, and the
# part of the table that the ids come from.
_Size = tuple[int, int, int, int, float]
_SIZES: tuple[_Size, ...] = tuple(
    (ids, each, rows, dim, part)
    for ids, each in ((256, 1), (2048, 1), (4096, 8))
    for rows, dim in ((2_000, 8), (2_000, 64), (200_000, 16), (200_000, 64))
    for part in (1.0, 0.05)
)
# Lookups that are done in one op: how many, and of each the ids, rows and width of the table. A
# step of a model has other work between its lookups and other tables beside each, so that little
# of what an op needs lies ready.
_GROUPS = (
    *((count, ids, 8_000, 16) for count in (1, 4, 24) for ids in (256, 1024)),
    *((count, 512, 2_000, 8) for count in (1, 16)),
    *((count, 512, 20_000, 64) for count in (1, 3)),
    (3, 4096, 60_000, 32),
)
_BATCHES = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Case:
    """One program that is measured.

    Attributes:
      fused: how its lookups are.
      optimizer: of its tables: Adagrad "fused", or TensorFlow's "adagrad" or "adam".
      numbers: of its sizes.
      grouped: whether it has the lookups of `_GROUPS` instead.
    """

    fused: str
    optimizer: str
    numbers: tuple[int, ...] = tuple(range(len(_SIZES)))
    grouped: bool = False


# A grouped lookup has a gradient op of its own where the update is not fused. What is fused in a
# finished graph is the same ops, and Adam's update, which goes through all rows, whatever the ids.
_CASES = (
    *(_Case(fused=version, optimizer="fused") for version in FUSIONS if version != AUTO),
    _Case(fused="grouped", optimizer="adagrad"),
    _Case(
        fused=AUTO,
        optimizer="adam",
        numbers=tuple(i for i, (*_, part) in enumerate(_SIZES) if part == 1.0),
    ),
    _Case(fused=AUTO, optimizer="adagrad", grouped=True),
    _Case(fused=AUTO, optimizer="adam", grouped=True),
)


def fused_costs(*, again: bool = False) -> FusedCosts:
    """What ops of fused lookups, layers and columns of text cost on this machine.

    Measured the first time, in about a minute, on an otherwise idle machine at best; then read
    from a file in the user's cache directory. Updates of rows are measured with Adagrad, those of
    whole tables with Adam.

    Args:
      again: measures once more.

    Raises:
      RunError: the measurement failed.
    """
    path = _path()
    known = None if again else _kept(path)
    if known is not None:
        return known
    measured = fitted([sample for case in _CASES for sample in _samples(case)])
    measured = dataclasses.replace(measured, times=times_of_stock())
    # Where nothing can be kept, the next call measures again.
    with contextlib.suppress(OutputError):
        make_directory(path.parent)
        with replacing(path) as part:
            part.write_text(json.dumps({"format": _FORMAT, **measured.to_json()}), "utf-8")
    return measured


def costs_are_known() -> bool:
    """Whether `fused_costs` has been measured on this machine before."""
    return _kept(_path()) is not None


def _kept(path: Path) -> FusedCosts | None:
    """What the file says; None where there is none, or one that is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        known = json.loads(path.read_text("utf-8"))
        if known["format"] == _FORMAT:
            return FusedCosts.from_json(known)
    return None


def _path() -> Path:
    """One file for each kind of machine, version of TensorFlow and build of this library."""
    facts = machine()
    build = hashlib.sha256(library_path().read_bytes()).hexdigest()[:8]
    known = "-".join([*(str(facts.get(key, "")) for key in ("cpu", "tensorflow")), build])
    name = "".join(c if c.isalnum() or c in "-." else "_" for c in known)
    return user_cache() / f"fused-costs-{name or platform.machine()}.json"


def _samples(case: _Case) -> Iterator[Sample]:
    build = functools.partial(_build, case)
    found = traced("lookups", build, case.fused, warm_up_steps=_BATCHES)
    for op, name, ns in medians(found):
        number = _number(name, op, case) if op.startswith("Workbench") else None
        if number is not None:
            yield Sample(op=op, loads=_loads_of(case, number), ns=ns)


def _loads_of(case: _Case, number: int) -> tuple[LookupLoad, ...]:
    """What each lookup of an op is asked for."""
    if case.grouped:
        count, ids, rows, dim = _GROUPS[number]
        return (_load_of(ids, rows, dim, 1.0),) * count
    ids, _, rows, dim, part = _SIZES[number]
    return (_load_of(ids, rows, dim, part),)


def _number(name: str, op: str, case: _Case) -> int | None:
    """Of which size a node is, by its name."""
    if case.fused == AUTO:
        # Ops of a plan are counted, in the order of the lookups; the others are of other cases.
        place = int(name.rpartition("_")[2])
        if case.grouped:
            return place
        return case.numbers[place] if op.endswith("ApplyAll") else None
    for part in name.replace("_table", "").replace("update_", "").split("/"):
        head, _, number = part.partition("size")
        if not head and number.isdigit():
            return int(number)
    return None


def _load_of(ids: int, rows: int, dim: int, part: float) -> LookupLoad:
    drawn = _ids(0, ids, rows, part)
    unique = float(np.mean([len(np.unique(batch)) for batch in drawn]))
    return LookupLoad(ids=float(ids), unique=unique, dim=dim, table_bytes=4.0 * rows * dim)


def _ids(number: int, ids: int, rows: int, part: float) -> np.ndarray:
    """int64 [batches, ids]."""
    drawn: np.ndarray = np.random.default_rng(number).integers(
        max(1, int(rows * part)), size=(_BATCHES, ids)
    )
    return drawn


def _groups(case: _Case) -> list[dict[str, _Size]]:
    """By name the sizes of the lookups that are done in one op, if a plan does several in one."""
    if case.grouped:
        return [
            {f"size{number}of{i}": (ids, 1, rows, dim, 1.0) for i in range(count)}
            for number, (count, ids, rows, dim) in enumerate(_GROUPS)
        ]
    return [{f"size{number}": _SIZES[number]} for number in case.numbers]


def _build(case: _Case, _optimizations: Optimizations) -> Built:
    """One lookup of each size and its update, all in one step, one op after the other."""
    import tensorflow as tf

    from workbench.ops.embedding_variable.optimizers import AdagradOptimizer

    v1 = tf.compat.v1
    groups = _groups(case)
    sizes = {name: size for group in groups for name, size in group.items()}
    batches = {
        name: _ids(number, ids, rows, part)
        for number, (name, (ids, _, rows, _, part)) in enumerate(sizes.items())
    }
    dataset = tf.data.Dataset.from_tensor_slices(batches).repeat()
    drawn = v1.data.make_one_shot_iterator(dataset).get_next()
    losses: list[tf.Tensor] = []
    for group in groups:
        # One behind the other, lest a plan do them in one op.
        with tf.control_dependencies(losses[-1:] if case.fused == AUTO else []):
            each = [_loss(name, size, tf.identity(drawn[name])) for name, size in group.items()]
            losses.append(tf.add_n(each))
    optimizers = {
        "fused": AdagradOptimizer,
        "adagrad": v1.train.AdagradOptimizer,
        "adam": v1.train.AdamOptimizer,
    }
    train_op = optimizers[case.optimizer](0.01).minimize(tf.add_n(losses))
    config = v1.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    return Built(train_op=train_op, config=config)


def _loss(name: str, size: _Size, ids: tf.Tensor) -> tf.Tensor:
    import tensorflow as tf

    from workbench.ops.lookup.fusion import safe_embedding_lookup_sparse

    count, each, rows, dim, _ = size
    v1 = tf.compat.v1
    with v1.name_scope(name):
        zeros = v1.zeros_initializer()
        table = v1.get_variable(f"{name}_table", [rows, dim], initializer=zeros)
        places = np.stack([np.arange(count) // each, np.arange(count) % each], axis=1)
        sparse = tf.SparseTensor(tf.constant(places), ids, [count // each, each])
        # A loss whose gradient needs the vectors: else nothing would be looked up.
        return tf.nn.l2_loss(safe_embedding_lookup_sparse(table, sparse, combiner="mean"))

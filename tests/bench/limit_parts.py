"""What a step consists of: in the reference program, and in the view `wb.limit`.

The counts of the reference follow from its sizes. They are another source than the view's, which
come from the shapes in a trace: each tensor that a part reads or writes counts once.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pandas as pd

from tests.bench.limit_file import DIMENSION, NUMBERS, PAIRS, TABLES, layer_sizes

PRODUCTS, COPIES, NORMS, INTERACTIONS = "products", "copies of factors", "norms", "interactions"
LOOKUPS, TABLE_UPDATES, DENSE_UPDATES = "lookups", "updates of tables", "dense updates"
OTHERS, WAITS = "others", "waits"
# In the order of `enum Kind` of native/bench/step_limit.cc.
PARTS = (
    *(PRODUCTS, COPIES, NORMS, INTERACTIONS, LOOKUPS),
    *(TABLE_UPDATES, DENSE_UPDATES, OTHERS, WAITS),
)
# What names the ops of a part; the first that matches counts.
_OPS = (
    ("MatMul", PRODUCTS),
    ("BatchNorm", NORMS),
    ("Interaction", INTERACTIONS),
    ("GroupedLookUp", LOOKUPS),
    ("GroupedApplyAll", DENSE_UPDATES),
    ("GroupedApply", TABLE_UPDATES),
    ("SparseApply", TABLE_UPDATES),
    ("Apply", DENSE_UPDATES),
)
_FLOAT = 4.0


def counts(model: str, batch: int) -> dict[str, tuple[float, float]]:
    """Floating-point operations and bytes of a step of the reference, of the parts that have any.

    Args:
      model: one of `limit_file.MODELS`.
      batch: rows of a batch.
    """
    sizes = layer_sizes(model)
    is_dlrm = model == "dlrm"
    flops = moved = 0.0
    for number, (inputs, units) in enumerate(sizes):
        # DLRM's numbers have no gradient.
        times = 2 if is_dlrm and number == 0 else 3
        flops += times * 2.0 * batch * inputs * units
        moved += times * _FLOAT * (batch * inputs + inputs * units + batch * units)
    units = sum(units for _, units in sizes)
    dense = sum(units * (inputs + 3) for inputs, units in sizes) + sizes[-1][1] + 1
    dense += 0 if is_dlrm else NUMBERS + 1
    vectors = TABLES * DIMENSION
    if is_dlrm:
        every = vectors + DIMENSION
        crossed = 3 * 2.0 * PAIRS * DIMENSION, 3 * every + 2 * PAIRS
    else:
        # Sums and squares are one number at a time.
        crossed = 0.0, 3 * vectors + 2 * DIMENSION
    width = vectors + (0 if is_dlrm else TABLES)
    ids = TABLES * (1 if is_dlrm else 2)
    return {
        PRODUCTS: (flops, moved),
        NORMS: (0.0, 5 * _FLOAT * batch * units),
        INTERACTIONS: (batch * crossed[0], _FLOAT * batch * crossed[1]),
        LOOKUPS: (0.0, _FLOAT * batch * (2 * width + ids)),
        # Weight, slots and gradient; what is written beside them.
        DENSE_UPDATES: (0.0, _FLOAT * dense * (5 if is_dlrm else 7)),
    }


def of_view(nodes: pd.DataFrame) -> pd.DataFrame:
    """Sums of a limit's nodes by part: flops, bytes, least_ns, took_ns."""
    part = [next((to for word, to in _OPS if word in op), OTHERS) for op in nodes["op"]]
    columns = ["flops", "bytes", "least_ns", "took_ns"]
    return nodes.groupby(pd.Series(part, nodes.index, name="part"))[columns].sum()


def table(
    named: str,
    seconds: Mapping[str, float],
    counted: Mapping[str, tuple[float, float]],
    view: pd.DataFrame,
) -> str:
    """A table in Markdown: the parts of the reference beside the view's, in time of one core.

    Args:
      named: of what.
      seconds: of the reference's parts, CPU time of all threads.
      counted: what `counts` gave.
      view: what `of_view` gave.
    """
    heads = ("takes, ms", "Mflop", "MB", "view: Mflop", "MB", "at least, ms")
    lines = [f"| {named} | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for part in PARTS:
        flops, moved = counted.get(part, (None, None))
        known = view.loc[part] if part in view.index else {}
        cells: Sequence[float | None] = (
            1e3 * seconds[part],
            _scaled(flops, 1e-6),
            _scaled(moved, 1e-6),
            *(_scaled(known.get(name), 1e-6) for name in ("flops", "bytes", "least_ns")),
        )
        said = itertools.chain([part], ("" if c is None else f"{c:.2f}" for c in cells))
        lines.append("| " + " | ".join(said) + " |")
    return "\n".join(lines)


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor

"""The public Criteo click-log format: label, I1..I13, C1..C26, tab-separated, fields may be empty.

The generator draws what matters for a training step from the published shape of the data: the
cardinality of each categorical column, ids that follow a power law, counts that are log-normal,
columns that are empty together, a quarter of clicks, and a label that can be learned.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from workbench.models.data.containers import check_file
from workbench.models.data.synthetic import clicks, lean, mixed, power_law, write_rows
from workbench.models.data.table_format import CheckedTable, Column, TableFormat

NUMBERS = tuple(f"I{i}" for i in range(1, 14))
CATEGORIES = tuple(f"C{i}" for i in range(1, 27))
CRITEO = TableFormat(
    summary="label, I1..I13, C1..C26",
    separator=b"\t",
    columns=(
        Column(name="label", kind="label"),
        *(Column(name=name, kind="number") for name in NUMBERS),
        *(Column(name=name, kind="category") for name in CATEGORIES),
    ),
)
# Distinct values of C1..C26.
CARDINALITIES = (
    1396, 553, 2594031, 698469, 290, 23, 12048, 608, 3, 65156, 5309, 2186509, 3128,
    26, 12750, 1537323, 10, 5002, 2118, 4, 1902327, 17, 15, 135790, 94, 84305,
)  # fmt: skip

_GENERATOR_VERSION = 1
# Mean and deviation of log(1 + value), share of empty fields, of I1..I13.
_COUNTS = (
    (0.7, 0.9, 0.45), (2.1, 2.0, 0.0), (2.3, 1.3, 0.21), (1.8, 1.0, 0.21), (7.1, 2.9, 0.03),
    (3.5, 1.8, 0.22), (1.6, 1.3, 0.04), (2.0, 1.2, 0.0), (3.6, 1.7, 0.04), (0.4, 0.4, 0.45),
    (0.8, 0.9, 0.04), (0.3, 0.5, 0.77), (1.9, 1.1, 0.21),
)  # fmt: skip
_LARGEST_LOG = 14.5
# Columns that are empty together, and how often.
_EMPTY_TOGETHER = (
    (("C3", "C4", "C12", "C16", "C21", "C24"), 0.035),
    (("C6",), 0.12),
    (("C19", "C20", "C25", "C26"), 0.42),
    (("C22",), 0.77),
)
# Columns whose values say something about the click, and how strongly.
_TELLING = {"C1": 0.6, "C2": 0.8, "C5": 0.5, "C8": 0.6, "C14": 0.9, "C17": 1.2, "C20": 0.8}


def check_criteo(path: str | os.PathLike[str], *, rows: int | None = None) -> CheckedTable:
    """Checks the first `rows` rows (all when None) of a Criteo file; see `check_file`."""
    return check_file(path, CRITEO, rows=rows)


def generate_criteo(path: str | os.PathLike[str], *, rows: int = 200_000, seed: int = 1) -> Path:
    """Writes a click log of `rows` rows; keeps a file that the same rows and seed made earlier.

    The first rows of a longer log equal those of a shorter one with the same seed.

    Raises:
      DataError: `rows` or `seed` is out of range, or another file is in the way.
    """
    recipe: dict[str, int | str] = {"format": "criteo", "generator": _GENERATOR_VERSION}
    return write_rows(path, _lines, recipe, rows=rows, seed=seed)


def _lines(seed: list[int], rows: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    counts, logs = _draw_counts(rng, rows)
    empty = {
        name: mask
        for names, share in _EMPTY_TOGETHER
        for mask in [rng.random(rows) < share]
        for name in names
    }
    score = -0.4 + 0.35 * (logs[:, 5] - 3.5) / 1.8 - 0.5 * (logs[:, 10] - 0.8)
    categories = []
    for index, (name, cardinality) in enumerate(zip(CATEGORIES, CARDINALITIES, strict=True)):
        bits = mixed(power_law(rng.random(rows), cardinality), index)
        absent = empty.get(name)
        if name in _TELLING:
            # Nothing is known of an empty value.
            leans = lean(bits) if absent is None else np.where(absent, 0, lean(bits))
            score += 2.0 * _TELLING[name] * leans
        text = _hex(bits)
        if absent is not None:
            text[absent] = b""
        categories.append(text.tolist())
    label = clicks(rng, score)
    return [b"\t".join(fields) for fields in zip(label, *counts, *categories, strict=True)]


def _draw_counts(rng: np.random.Generator, rows: int) -> tuple[list[list[bytes]], np.ndarray]:
    """The fields of I1..I13 as text, and log(1 + value) of each, [rows, 13]."""
    mean, deviation, share = np.array(_COUNTS).T
    logs = np.clip(rng.normal(mean, deviation, (rows, len(_COUNTS))), 0, _LARGEST_LOG)
    values = np.floor(np.expm1(logs)).astype(np.int64)
    # I2 is the one column with negative values.
    values[:, 1] -= rng.random(rows) < 0.1
    absent = rng.random(values.shape) < share
    columns = []
    for i in range(len(_COUNTS)):
        texts = np.array([b"%d" % value for value in values[:, i].tolist()])
        texts[absent[:, i]] = b""
        columns.append(texts.tolist())
    return columns, np.where(absent, 0.0, logs)


def _hex(bits: np.ndarray) -> np.ndarray:
    """The low 32 bits of each as 8 hexadecimal digits, dtype S8."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    shifts = np.arange(28, -1, -4, dtype=np.uint64)
    nibbles = (bits[:, None] >> shifts) & np.uint64(15)
    return np.ascontiguousarray(digits[nibbles.astype(np.intp)]).view("S8").ravel()

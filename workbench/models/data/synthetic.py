"""What the generators of data draw from: power laws, values fixed for each id, chunks of rows.

An id's traits come from its well-mixed bits, so that they are the same in every row, run and file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from workbench.errors import DataError
from workbench.models.data.generated_file import write_generated

_CHUNK_ROWS = 10_000
_SHOW_PROGRESS_AFTER_S = 2.0
# Small vocabularies are dominated by a few values, large ones have long tails.
_SMALL = 1000
_STEEP, _FLAT = 1.6, 1.1

Lines = Callable[[list[int], int], list[bytes]]


def write_rows(
    path: str | os.PathLike[str],
    lines: Lines,
    recipe: dict[str, int | str],
    *,
    rows: int,
    seed: int,
) -> Path:
    """Writes a generated file of `rows` rows; keeps one that the same recipe made earlier.

    The first rows of a longer file equal those of a shorter one with the same seed.

    Args:
      path: the file.
      lines: a seed of random numbers and a number of rows → these rows, without line ends.
      recipe: what else makes the file, such as its format and the version of its generator.
      rows: rows of the file, at least 1.
      seed: of everything drawn, at least 0.

    Raises:
      DataError: `rows` or `seed` is out of range, or another file is in the way.
    """
    if rows < 1:
        raise DataError(f"{path}: asked to generate {rows} rows; expected at least 1")
    if seed < 0:
        raise DataError(f"{path}: the seed is {seed}; expected 0 or more")
    chunks = _chunks(lines, rows, seed, Path(path).name)
    return write_generated(path, chunks, {**recipe, "rows": rows, "seed": seed})


def _chunks(lines: Lines, rows: int, seed: int, name: str) -> Iterator[bytes]:
    with tqdm(
        total=rows,
        unit=" rows",
        unit_scale=True,
        desc=f"Generating {name}",
        delay=_SHOW_PROGRESS_AFTER_S,
        leave=False,
    ) as bar:
        for index, start in enumerate(range(0, rows, _CHUNK_ROWS)):
            # Whole chunks are drawn, and cut afterwards.
            drawn = lines([seed, index], _CHUNK_ROWS)
            count = min(_CHUNK_ROWS, rows - start)
            yield b"\n".join(drawn[:count]) + b"\n"
            bar.update(count)


def power_law(uniform: np.ndarray, cardinality: int) -> np.ndarray:
    """Ranks 0..cardinality-1 by a power law, of numbers in 0..1 (its continuous inverse)."""
    exponent = _STEEP if cardinality < _SMALL else _FLAT
    top = float(cardinality + 1) ** (1 - exponent)
    drawn = (1 + uniform * (top - 1)) ** (1 / (1 - exponent))
    return np.minimum(drawn.astype(np.int64) - 1, cardinality - 1)


def mixed(ranks: np.ndarray, column: int) -> np.ndarray:
    """64 well-mixed bits for each value of a column, the same in every run (murmur's finaliser)."""
    salt = (column + 1) * 0x9E3779B97F4A7C15 % 2**64
    bits = ranks.astype(np.uint64) + np.uint64(salt)
    for multiplier in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        bits = (bits ^ (bits >> np.uint64(33))) * np.uint64(multiplier)
    return bits ^ (bits >> np.uint64(33))


def unit(bits: np.ndarray) -> np.ndarray:
    """The number in 0..1 that mixed bits stand for."""
    return (bits >> np.uint64(11)).astype(np.float64) / 2**53


def lean(bits: np.ndarray) -> np.ndarray:
    """What an id says about the click: uniform in -1..1, fixed for each value."""
    return (bits >> np.uint64(40)).astype(np.float64) / 2**23 - 1.0


def clicks(rng: np.random.Generator, score: np.ndarray) -> list[bytes]:
    """Labels 0 or 1 as text, 1 as often as the logistic function of the score says."""
    return np.where(rng.random(len(score)) < 1 / (1 + np.exp(-score)), b"1", b"0").tolist()

"""Parameters of tests, of which `make test` runs a part: the others are slow."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest


def rest_slow(values: Sequence[Any], *quick: Any) -> list[Any]:
    """Values of one parameter; all but these few are slow."""
    assert all(each in values for each in quick)
    return [
        each if each in quick else pytest.param(each, marks=pytest.mark.slow) for each in values
    ]


def every_value(**parameters: Sequence[Any]) -> Any:
    """Runs a test with every combination of values; slow where a few others have all values."""
    return _covering(parameters, pairs=False)


def every_pair(**parameters: Sequence[Any]) -> Any:
    """Runs a test with every combination of values; slow where a few others have all pairs."""
    return _covering(parameters, pairs=True)


def _covering(parameters: dict[str, Sequence[Any]], *, pairs: bool) -> Any:
    sizes = [len(values) for values in parameters.values()]
    every = list(itertools.product(*map(range, sizes)))
    quick = _all_pairs(every) if pairs else _all_values(sizes)
    cases = [
        pytest.param(
            *(values[i] for values, i in zip(parameters.values(), each, strict=True)),
            marks=() if each in quick else pytest.mark.slow,
        )
        for each in every
    ]
    return pytest.mark.parametrize(tuple(parameters), cases)


def _all_values(sizes: Sequence[int]) -> set[tuple[int, ...]]:
    """As many combinations as the longest parameter has values; the others begin again."""
    return {tuple(k % size for size in sizes) for k in range(max(sizes))}


def _all_pairs(every: Sequence[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """A few combinations, chosen greedily, with all that two parameters have beside each other."""

    def pairs(combination: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
        return set(itertools.combinations(enumerate(combination), 2))

    missing, chosen = set().union(*map(pairs, every)), set()
    while missing:
        best = max(every, key=lambda each: len(pairs(each) & missing))
        missing -= pairs(best)
        chosen.add(best)
    return chosen

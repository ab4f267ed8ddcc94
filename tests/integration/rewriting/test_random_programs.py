"""Random recommender programs: rewritten ones give and train what stock TensorFlow does.

`make fuzz SEEDS=2000` runs more of them, `python -m tests.fuzz --kind fused --show 17` prints the
smallest program that differs like the one of a seed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.kinds import DRAWS, check

# Of each kind how many programs a test runs, how many tests there are, and how many are not slow.
SHARES = {
    "fused": (4, 14, 2),
    "served": (4, 4, 1),
    "smart": (3, 4, 1),
    "function": (2, 4, 1),
    "keras": (2, 4, 1),
}


def shares() -> Iterator[object]:
    """Ranges of seeds, a hundred in all."""
    for kind, (size, count, quick) in SHARES.items():
        for number in range(count):
            marks = () if number < quick else pytest.mark.slow
            seeds = range(number * size, (number + 1) * size)
            yield pytest.param(kind, seeds, marks=marks, id=f"{kind} from {seeds.start}")


@pytest.fixture(autouse=True)
def graph() -> None:
    """Instead of the graph of the other tests: programs make their own."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kind", "seeds"), shares())
def test_a_rewritten_program_trains_as_the_stock_one(kind: str, seeds: range) -> None:
    fused = 0
    for seed in seeds:
        result = check(kind, DRAWS[kind](seed))
        fused += result.fused > 0
        found = [each for each in result.differences if each.kind != "order"]
        # A stage cannot carry an iterator's SparseTensors, which the session refuses.
        found = [each for each in found if kind != "smart" or "of type variant" not in each.text]
        shown = f"python -m tests.fuzz --kind {kind} --show {seed}"
        assert not found, f"{shown}\n" + "\n".join(map(str, found[:5]))
    assert fused * 2 >= len(seeds), "most of these programs are to be fused"

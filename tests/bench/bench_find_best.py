"""find_best several times on one model: how much slower its choices are than a long search's.

Every search has all toggles that keep the training. The choices and the best of the long search are
then measured beside each other alone. Prints a line for each search, and how many of them chose a
setting that is within 5 % of the long search's by the median and not clearly slower.

    python -m tests.bench.bench_find_best [--model dlrm] [--searches 5] [--budget 180] [--long 300]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import workbench as wb
from tests.bench.bench_predict import program_of
from tests.bench.duel import duel
from tests.bench.model_jobs import MODELS

WITHIN = 0.05
DUEL_S = 60.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="dlrm", choices=MODELS)
    parser.add_argument("--searches", type=int, default=5)
    parser.add_argument("--budget", type=float, default=180.0, help="seconds of each search")
    parser.add_argument("--long", type=float, default=300.0, help="seconds of the long search")
    parser.add_argument("--out", type=Path, default=Path("data/bench/find-best"))
    chosen = parser.parse_args(arguments)
    chosen.out.mkdir(parents=True, exist_ok=True)
    program = program_of(chosen.model, chosen.out)
    searches = [searched(program, chosen.budget, seed) for seed in range(chosen.searches)]
    best = searched(program, chosen.long, seed=chosen.searches).optimizations
    duels = chosen.out / f"{chosen.model}-{time.time():.0f}.json"
    good = 0
    for found in searches:
        beside = duel(program, found.optimizations, best, budget_s=DUEL_S, kept=duels)
        is_good = beside.as_good(WITHIN) and beside.high >= 1
        good += is_good
        print(f"{beside.chosen} beside {beside.best}: {beside}{'' if is_good else ', slower'}")
    print(f"{good} of {len(searches)} within {WITHIN:.0%} of the long search's and not slower")
    return 0


def searched(program: wb.Program, budget_s: float, seed: int) -> wb.Best:
    """One search; prints what it chose and what it took."""
    begun_s = time.monotonic()
    found = wb.find_best(program, budget=budget_s, seed=seed, trace_steps=0)
    took_s = time.monotonic() - begun_s
    print(
        f"{found.label}: {found.ratio:.2f}× all off, {len(found.runners_up) + 1} measured, "
        f"{took_s:.0f} s of {budget_s:.0f}",
        flush=True,
    )
    return found


if __name__ == "__main__":
    raise SystemExit(main())

"""Runs random programs and prints where stock and rewritten ones differ.

python -m tests.fuzz --seeds 2000 [--kind fused] [--first 0] [--jobs 2]
python -m tests.fuzz --kind fused --show 17   # one seed: the program, its differences, the smallest

Programs run in child processes, so that one that ends its process is a difference and no end.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

from tests.fuzz.tally import Tally

_CHUNK = 50
_KINDS = ("fused", "served", "smart", "function", "keras")
_SHOWN = 12


def main() -> int:
    """The command line; 1 where something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--kind", choices=_KINDS)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--show", type=int)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    wishes = parser.parse_args()
    if wishes.show is not None:
        return show(wishes.kind or "fused", wishes.show)
    if wishes.child:
        return child(wishes.kind, wishes.first, wishes.seeds)
    failed = 0
    for kind in [wishes.kind] if wishes.kind else _KINDS:
        failed += run_all(kind, wishes.first, wishes.seeds, wishes.jobs)
    return int(failed > 0)


def run_all(kind: str, first: int, count: int, jobs: int) -> int:
    """Runs the programs of some seeds; prints counts on the way; returns how many differ."""
    tally, lock = Tally(), threading.Lock()
    starts = range(first, first + count, _CHUNK)

    def chunk(start: int) -> None:
        for record in records(kind, start, min(_CHUNK, first + count - start)):
            with lock:
                new = tally.add(record)
                if new:
                    print(f"  {kind} {new[:300]}", flush=True)
                if tally.programs % _CHUNK == 0:
                    print(f"{kind}: {tally}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(max(1, jobs)) as pool:
        list(pool.map(chunk, starts))
    print(f"{kind}, all: {tally}", flush=True)
    faults = sorted(tally.faults.items(), key=lambda each: -len(each[1][0]))
    for sign, (seeds, text, ref) in faults[:_SHOWN]:
        print(f"\n{len(seeds)} × {sign}{' (a ref variable)' if ref else ''}")
        print(f"  seeds {', '.join(map(str, sorted(seeds)[:8]))}; {text[:300]}", flush=True)
        subprocess.run(_command(kind, "--show", str(min(seeds))), check=False)
    return tally.different


def records(kind: str, first: int, count: int) -> Iterator[dict[str, Any]]:
    """What became of each program; a child goes on behind one that ended another child."""
    seed, end = first, first + count
    while seed < end:
        command = _command(kind, "--child", "--first", str(seed), "--seeds", str(end - seed))
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith("{"):
                    yield json.loads(line)
                    seed += 1
        if seed < end:
            yield _ended(seed, process.returncode)
            seed += 1


def _command(kind: str, *arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--kind", kind, *arguments]


def _ended(seed: int, status: int) -> dict[str, Any]:
    text = f"the process ended with status {status}"
    zeros = ("fused", "staged", "orders", "steps", "raced", "refused_feeds", "edits")
    empty = dict.fromkeys((*zeros, "refused_edits", "varied"), 0)
    found = [("process ends", text)]
    return {**empty, "seed": seed, "skipped": "", "ref": False, "differences": found}


def child(kind: str, first: int, count: int) -> int:
    """Prints a record, a line of JSON, for each program."""
    from tests.fuzz.kinds import DRAWS, check, signature

    for seed in range(first, first + count):
        program = DRAWS[kind](seed)
        result = check(kind, program)
        kept = [each for each in result.differences if each.kind != "order"]
        record = {
            **{name: getattr(result, name) for name in ("fused", "staged", "steps", "raced")},
            **{name: getattr(result, name) for name in ("refused_feeds", "refused_edits")},
            **{name: getattr(result, name) for name in ("edits", "varied", "skipped")},
            "seed": seed,
            "ref": getattr(program, "is_ref", False),
            "orders": len(result.differences) - len(kept),
            "differences": [(signature(each), str(each)) for each in kept],
        }
        print(json.dumps(record), flush=True)
    return 0


def show(kind: str, seed: int) -> int:
    """Prints a program's differences, and the smallest program with the first of them."""
    from tests.fuzz.kinds import DRAWS, check
    from tests.fuzz.shrink import shrunk

    result = check(kind, DRAWS[kind](seed))
    if not result.differences:
        print(f"{kind} {seed}: no difference; fused {result.fused}, {result.steps} runs")
        return 0
    result.differences.sort(key=lambda each: each.kind == "order")
    small, difference = shrunk(result, lambda program: check(kind, program))
    print(f"  {difference}")
    for line in small.lines():
        print(f"    {line}")
    return 1


if __name__ == "__main__":
    sys.exit(main())

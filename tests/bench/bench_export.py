"""An EmbeddingVariable of a million keys as a SavedModel: seconds to write, to load and to read.

Each round writes the SavedModel, loads it in a process that cannot import Workbench and reads
10,000 rows there, and then reads them in the session. The table has medians of the rounds and the
smallest and largest.

    python -m tests.bench.bench_export [--keys 1000000] [--dim 16] [--rounds 5]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.builders.stock_python import stock_outputs

_READ = 10_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(arguments)
    import tensorflow as tf

    import workbench as wb

    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        table = wb.get_embedding_variable("user", chosen.dim)
        keys = v1.placeholder(tf.int64, [None], "keys")
        rows, read = table.sparse_read(keys), table.sparse_read(keys, read_only=True)
        session.run(v1.global_variables_initializer())
        random = np.random.default_rng(0)
        known = random.choice(2**40, chosen.keys, replace=False)
        session.run(rows, {keys: known})
        given = np.where(random.random(_READ) < 0.8, random.choice(known, _READ), -known[:_READ])
        timed: dict[str, list[float]] = {
            "write": [],
            "load and read elsewhere": [],
            "read here": [],
        }
        same = True
        # The first round also starts the process that loads.
        for _ in range(chosen.rounds + 1):
            with tempfile.TemporaryDirectory() as home:
                folder, begin = Path(home) / "out", time.perf_counter()
                wb.export(session, folder, inputs=[keys], outputs={"rows": read})
                timed["write"].append(time.perf_counter() - begin)
                begin = time.perf_counter()
                found = stock_outputs(folder, {"keys": given}, Path(home))["rows"]
                timed["load and read elsewhere"].append(time.perf_counter() - begin)
                begin = time.perf_counter()
                expected = session.run(read, {keys: given})
                timed["read here"].append(time.perf_counter() - begin)
                same = same and found.tobytes() == expected.tobytes()
    print(f"{chosen.keys:,} keys of {chosen.dim} values, {chosen.rounds} rounds")
    for what, (_, *seconds) in timed.items():
        middle = statistics.median(seconds)
        print(f"{what:<24} {middle:8.3f} s ({min(seconds):.3f} to {max(seconds):.3f})")
    print(f"{_READ:,} rows read in both, unknown keys among them: equal to the bit: {same}")


if __name__ == "__main__":
    main()

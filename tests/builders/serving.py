"""What tests of served models share: clocks, senders, points, and a small saved model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.experiments.serving.points import Load, LoadBlock, LoadPoint, RequestSpan
from workbench.experiments.serving.results import Receipt, ServedVariant, ServingComparison


class FakeClock:
    """Time that passes only where a test says so; for one client."""

    def __init__(self) -> None:
        self.time_ns = 1_000_000_000

    def now_ns(self) -> int:
        return self.time_ns

    def sleep_until_ns(self, moment: int) -> None:
        self.time_ns = max(self.time_ns, moment)

    def thread_cpu_ns(self) -> int:
        return 0

    def process_cpu_ns(self) -> int:
        return 0


class FakeServer:
    """A sender whose answers take as long as a test says, on a fake clock."""

    def __init__(self, clock: FakeClock, service_ns: Callable[[int], int]) -> None:
        self.clock, self.service_ns = clock, service_ns

    def send(self, number: int) -> bool:
        self.clock.time_ns += self.service_ns(number)
        return True


def lindley_ns(arrivals: np.ndarray, services: np.ndarray) -> np.ndarray:
    """Latencies of a queue with one server, by Lindley's recursion."""
    waited, latencies = 0, np.empty(len(arrivals), np.int64)
    gaps = np.diff(arrivals, append=0)
    for at, service in enumerate(services):
        latencies[at] = waited + service
        waited = max(0, waited + int(service) - int(gaps[at]))
    return latencies


def block(
    per_s: float = 1000.0,
    p50_ns: float = 1e6,
    *,
    failed: int = 0,
    client_cpu_s: float = 0.01,
    server_cpu_s: float = 0.8,
) -> LoadBlock:
    """A block of one second."""
    return LoadBlock(
        answered=round(per_s),
        failed=failed,
        seconds=1.0,
        percentiles_ns=(p50_ns, 2 * p50_ns, 3 * p50_ns, 4 * p50_ns),
        client_cpu_s=client_cpu_s,
        server_cpu_s=server_cpu_s,
    )


def point(load: Load, rates: Sequence[float], *, rows: int = 1, **values: Any) -> LoadPoint:
    """A point with these requests a second in its rounds."""
    return LoadPoint(
        load=load,
        rows=rows,
        blocks=tuple(block(rate, 1e9 / rate, **values) for rate in rates),
        spans=(RequestSpan(client=0, arrival_ns=0, start_ns=5, end_ns=900),),
    )


def serving_comparison() -> ServingComparison:
    """Two settings under one and eight clients, the second of them twice as fast."""
    loads = (Load(kind="single stream"), Load(kind="clients", clients=8))
    variants = [
        ServedVariant(
            label=label,
            optimizations=setting,
            points=tuple(point(load, [factor * 990, factor * 1000, factor * 1020])
                         for load in loads),
            memory_bytes=40_000_000,
        )
        for label, setting, factor in (
            ("off", Optimizations(), 1),
            ("inline executor", Optimizations(executor="inline"), 2),
        )
    ]  # fmt: skip
    return ServingComparison(
        program="my model",
        signature="serving_default",
        requests_from="The requests were made from the signature.",
        variants=tuple(variants),
        receipts=(Receipt(label="inline executor", rows=1, requests=16, bit_equal=True),),
        rounds=3,
        environment={"cores": 2},
        taken_at="2026-01-02T03:04:05+00:00",
    )


def save_scores(folder: Path, tables: int = 4, rows: int = 50) -> Path:
    """Saves a model of sparse columns c0, c1, … and a dense one `x`, as version 1 exports it."""
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        inputs: dict[str, Any] = {"x": v1.placeholder(tf.float32, [None, 3], name="x")}
        columns = [inputs["x"]]
        for number in range(tables):
            name = f"c{number}"
            inputs[name] = v1.sparse_placeholder(tf.int64, [None, None], name=name)
            table = v1.get_variable(f"table{number}", [rows, 8])
            columns.append(v1.nn.safe_embedding_lookup_sparse(table, inputs[name], combiner="mean"))
        hidden = tf.nn.relu(
            tf.matmul(tf.concat(columns, 1), v1.get_variable("w", [3 + 8 * tables, 4]))
        )
        scores = tf.sigmoid(tf.matmul(hidden, v1.get_variable("v", [4, 1])), name="scores")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(session, str(folder), inputs, {"scores": scores})
    return folder

"""Measurements of a served model with numbers chosen by hand."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.experiments.serving.points import (
    Load,
    LoadBlock,
    LoadPoint,
    RateAtLimit,
    RateProbe,
    RequestSpan,
)
from workbench.experiments.serving.results import Receipt, ServedVariant, ServingComparison

ENVIRONMENT = {
    "tensorflow": "2.21.0",
    "workbench": "0.1.0",
    "python": "3.11.9",
    "cpu": "A Processor @ 2.60GHz",
    "cores": 2,
    "system": "Linux 6.1",
}
ONE = Load(kind="single stream")
EIGHT = Load(kind="clients", clients=8)
MANY = Load(kind="clients", clients=32)
FAST = Optimizations(fused_embeddings="auto", executor="inline")
FAST_LABEL = "auto fused + inline executor"
_SWING = (-1, 1, -0.5, 0.5, 1, -1)
_MS = 1_000_000


def arrivals(rate: float) -> Load:
    """An open loop of this rate."""
    return Load(kind="open loop", clients=32, rate=rate)


def point(
    load: Load,
    per_s: float,
    p50_ms: float,
    p99_ms: float,
    *,
    rows: int = 1,
    server_us: float = 900.0,
    client_us: float = 20.0,
    failed: int = 0,
    half: float = 0.01,
    **more: Any,
) -> LoadPoint:
    """Six blocks of a second that alternate around these numbers; `half` is how far, as a share."""
    blocks = []
    for number, swing in enumerate(_SWING):
        rate = per_s * (1 + half * swing)
        times = (p50_ms, 0.6 * p99_ms + 0.4 * p50_ms, p99_ms, 1.3 * p99_ms)
        blocks.append(
            LoadBlock(
                answered=round(rate),
                failed=failed if number == 0 else 0,
                seconds=round(rate) / rate,
                percentiles_ns=tuple(ms * _MS * (1 - half * swing) for ms in times),
                client_cpu_s=client_us * rate / 1e6,
                server_cpu_s=server_us * rate / 1e6,
            )
        )
    return LoadPoint(load=load, rows=rows, blocks=tuple(blocks), **more)


def requests(
    clients: int,
    service_ms: float,
    *,
    at_once: int,
    seconds: float = 0.4,
    failed: Sequence[int] = (),
) -> tuple[RequestSpan, ...]:
    """Clients that wait for their answers, and are served in the order in which they arrive.

    Args:
      clients: how many.
      service_ms: how long a step takes; each third one takes twice as long.
      at_once: steps that run at one time.
      seconds: until when requests are sent.
      failed: numbers of the requests that fail, in the order in which they began.
    """
    free, spans = [0] * at_once, []
    queue = [(client * 1000, client) for client in range(clients)]
    while queue:
        arrival, client = heapq.heappop(queue)
        start = max(arrival, heapq.heappop(free))
        end = start + int(service_ms * _MS) * (1 + (len(spans) % 3 == 0))
        heapq.heappush(free, end)
        spans.append(
            RequestSpan(
                client=client,
                arrival_ns=arrival,
                start_ns=start,
                end_ns=end,
                failed=len(spans) in failed,
            )
        )
        if end < seconds * 1e9:
            heapq.heappush(queue, (end, client))
    return tuple(spans)


def baseline(**changes: Any) -> ServedVariant:
    """All off: hand-over with one client, a long tail with many on two cores."""
    points = (
        point(ONE, 900, 1.05, 1.6, server_us=620),
        point(EIGHT, 1600, 4.6, 14.0, server_us=1100, spans=requests(8, 3.5, at_once=8)),
        point(MANY, 1640, 17.0, 62.0, server_us=1150, spans=requests(32, 14, at_once=32)),
    )
    return ServedVariant(
        **{
            "label": "off",
            "optimizations": Optimizations(),
            "points": points,
            "rates_at_limit": (at_limit(1150),),
            "memory_bytes": 412_000_000,
            **changes,
        }
    )


def fast(**changes: Any) -> ServedVariant:
    """Fused and inline, two steps at one time: more requests, and a short tail."""
    points = (
        point(ONE, 1750, 0.55, 0.8, server_us=540, half=-0.007),
        point(
            EIGHT, 3000, 2.6, 3.4, server_us=600, half=-0.006, spans=requests(8, 0.62, at_once=2)
        ),
        point(
            MANY, 3010, 10.5, 12.1, server_us=610, half=-0.008, spans=requests(32, 0.62, at_once=2)
        ),
    )
    return ServedVariant(
        **{
            "label": FAST_LABEL,
            "optimizations": FAST,
            "points": points,
            "rates_at_limit": (at_limit(2300, half=-0.015),),
            "memory_bytes": 431_000_000,
            "steps_at_once": 2,
            "fused_ops": 26,
            **changes,
        }
    )


def at_limit(rate: float, *, rows: int = 1, half: float = 0.02, **more: Any) -> RateAtLimit:
    """Six rounds that alternate around this rate."""
    rates = tuple(rate * (1 + half * swing) for swing in _SWING)
    probes = tuple(
        RateProbe(round=number, rate=rate * part, p99_ns=3.15 * _MS * part**3, kept=part < 1)
        for number, rate in enumerate(rates)
        for part in (0.5, 0.9, 1.1)
    )
    return RateAtLimit(rows=rows, limit_ns=3.15 * _MS, rates=rates, probes=probes, **more)


def served(*variants: ServedVariant, **changes: Any) -> ServingComparison:
    """A measurement of these variants; of `baseline` and `fast` where none is given."""
    variants = variants or (baseline(), fast())
    return ServingComparison(
        **{
            "program": "ranker",
            "signature": "serving_default",
            "requests_from": "512 requests made from the signature, with random values.",
            "variants": variants,
            "receipts": tuple(
                Receipt(label=variant.label, rows=1, requests=64, bit_equal=True)
                for variant in variants[1:]
            ),
            "rounds": 6,
            "environment": ENVIRONMENT,
            "settings": {"budget_s": 60.0, "seed": 1},
            "command": "workbench serve-bench ranker --clients 1,8,32 --toggle "
            "auto_fused+inline_executor+steps_at_once=2",
            "taken_at": "2026-11-29T08:03:12+00:00",
            **changes,
        }
    )


def of_all_kinds() -> ServingComparison:
    """Two numbers of rows, an open loop, a third setting, requests that fail."""
    first = baseline()
    large = (
        point(ONE, 420, 2.3, 3.0, rows=32),
        point(MANY, 700, 44.0, 120.0, rows=32),
        *(point(arrivals(rate), rate, 1.2 + rate / 900, 2.0 + rate / 300) for rate in (400, 900)),
    )
    faster = (
        point(ONE, 640, 1.5, 1.9, rows=32),
        point(MANY, 1150, 27.0, 31.0, rows=32),
        *(point(arrivals(rate), rate, 0.7 + rate / 2500, 1.0 + rate / 900) for rate in (400, 900)),
    )
    slow = (
        point(ONE, 890, 1.1, 1.7),
        point(EIGHT, 1500, 5.0, 18.0, failed=9, first_error="table 'c3' has no row 7"),
        point(
            MANY,
            1490,
            19.0,
            70.0,
            failed=31,
            first_error="table 'c3' has no row 7",
            spans=requests(32, 15, at_once=32, failed=range(3, 900, 40)),
        ),
        point(arrivals(400), 400, 1.8, 3.5),
        point(arrivals(900), 900, 2.4, 5.3, client_is_limit=True),
        point(ONE, 410, 2.4, 3.1, rows=32),
        point(MANY, 690, 46.0, 130.0, rows=32),
    )  # fmt: skip
    third = ServedVariant(
        label="2 inter-op threads", optimizations=Optimizations(inter_op_threads=2), points=slow
    )
    return served(
        baseline(points=(*first.points, *large)),
        fast(points=(*fast().points, *faster)),
        third,
        receipts=(
            Receipt(label=FAST_LABEL, rows=1, requests=64, bit_equal=True),
            Receipt(
                label=third.label,
                rows=1,
                requests=64,
                bit_equal=False,
                largest_difference=0.03,
                output="score",
            ),
        ),
    )

"""The requests of a block → a LoadBlock and some spans."""

from __future__ import annotations

import math

import numpy as np

from workbench.experiments.serving.load.generator import DROPPED, Sent
from workbench.experiments.serving.points import PERCENTILES, LoadBlock, RequestSpan

_SPANS = 240


def block_of(sent: Sent, seconds: float, *, is_open: bool, call_cost_ns: float = 0.0) -> LoadBlock:
    """What a block gave, without its begin.

    Args:
      sent: its requests.
      seconds: for which requests were begun, or arrived.
      is_open: whether they arrived at drawn moments.
      call_cost_ns: CPU that Python takes for one call, which is the client's.
    """
    first_ns = sent.begin_ns + round(DROPPED * seconds * 1e9)
    last_ns = max(sent.begin_ns + round(seconds * 1e9), first_ns + 1)
    if is_open:
        # Those that arrived late count, however late their answers came.
        counts = sent.arrival_ns >= first_ns
        last_ns = max(last_ns, int(sent.end_ns.max(initial=last_ns)))
    else:
        counts = (sent.end_ns > first_ns) & (sent.end_ns <= last_ns)
    if not counts.any():
        # Requests that take longer than a block.
        counts, first_ns = np.ones(len(sent.end_ns), bool), sent.begin_ns
        last_ns = max(last_ns, int(sent.end_ns.max(initial=last_ns)))
    answered = counts & sent.answered
    latencies = np.sort(sent.end_ns[answered] - sent.arrival_ns[answered])
    client_cpu_ns = min(sent.all_cpu_ns, sent.client_cpu_ns + call_cost_ns * len(counts))
    share = counts.sum() / max(1, len(counts))
    return LoadBlock(
        answered=int(answered.sum()),
        failed=int((counts & ~sent.answered).sum()) + sent.unsent,
        seconds=(last_ns - first_ns) / 1e9,
        percentiles_ns=percentiles(latencies),
        client_cpu_s=float(share * client_cpu_ns / 1e9),
        server_cpu_s=float(share * (sent.all_cpu_ns - client_cpu_ns) / 1e9),
    )


def percentiles(latencies: np.ndarray) -> tuple[float, ...]:
    """The `PERCENTILES` of sorted latencies: each is one of them; empty where there is none."""
    if not len(latencies):
        return ()
    # So many are at most as long; rounding must not make it one more.
    ranks = [math.ceil(share / 100 * len(latencies) - 1e-6) for share in PERCENTILES]
    return tuple(float(max(1, latencies[rank - 1])) for rank in ranks)


def spans_of(sent: Sent) -> tuple[RequestSpan, ...]:
    """Some requests in a row, from the middle of the block."""
    first = max(0, (len(sent.end_ns) - _SPANS) // 2)
    begin = sent.begin_ns
    return tuple(
        RequestSpan(
            client=int(sent.client[at]),
            arrival_ns=int(sent.arrival_ns[at] - begin),
            start_ns=int(sent.start_ns[at] - begin),
            end_ns=int(sent.end_ns[at] - begin),
            failed=not sent.answered[at],
        )
        for at in range(first, min(first + _SPANS, len(sent.end_ns)))
    )

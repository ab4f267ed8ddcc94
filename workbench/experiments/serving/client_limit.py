"""Whether the clients of a load, and not the server, bound how many requests are sent."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.experiments.serving.points import Load, LoadBlock

# With so much of the server's CPU, clients take a third of all, which the server could have.
_SHARE = 0.5
# Python's lock lets one client at a time do anything but wait for the server. It is handed over
# between them, so that they are at their end before they use a whole core.
_BUSY = 0.6
# Of what arrives, a load that keeps up sends this much.
_KEPT_UP = 0.95


def client_is_limit(load: Load, blocks: Sequence[LoadBlock]) -> bool:
    """Whether the clients could not send faster.

    They could not where they took half as much CPU as the server, or most of the one core that they
    can use. In an open loop that counts where fewer requests were sent than arrived, and what
    counts is the CPU that all that arrived would have taken.
    """
    seconds = sum(block.seconds for block in blocks)
    sent = sum(block.answered + block.failed for block in blocks)
    clients = sum(block.client_cpu_s for block in blocks)
    server = sum(block.server_cpu_s for block in blocks)
    wanted = sent
    if load.rate is not None:
        wanted = round(load.rate * seconds)
        if sent >= _KEPT_UP * wanted:
            return False
    busy = clients * wanted / max(1, sent)
    return bool(seconds > 0 and (clients >= _SHARE * server or busy >= _BUSY * seconds))

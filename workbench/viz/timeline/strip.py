"""Strip above the timeline: the whole trace in bins."""

from __future__ import annotations

import numpy as np

from workbench.core.trace.intervals import busy_time
from workbench.viz.style import colors
from workbench.viz.timeline.data import TimelineData

STRIP_BINS = 2048


def strip_columns(data: TimelineData, extent: tuple[int, int]) -> dict[str, np.ndarray]:
    """Busy share of each family over the inter-op threads, and of waits, per bin, 0 to 255.

    Args:
      data: what is shown. extent: first and last moment that is drawn.
    """
    trace, origin = data.trace, extent[0]
    # Edge k lies at k * length // bins, of which the product may leave 64 bits.
    whole, rest = divmod(extent[1] - origin, STRIP_BINS)
    count = np.arange(STRIP_BINS + 1)
    edges = origin + count * whole + count * rest // STRIP_BINS
    width = np.maximum(1, np.diff(edges))
    events = trace.events
    kept = (trace.tracks["kind"] == "inter_op").to_numpy(bool)[events["track"].to_numpy()]
    start, length, node, track = (
        events[name].to_numpy()[kept] for name in ("start_ns", "dur_ns", "node", "track")
    )
    family = data.names["family"].to_numpy()[node]
    threads = max(1, int(np.count_nonzero(np.bincount(track))))
    busy = busy_in_bins(start, start + length.astype(np.int64), family, edges)
    waits = [np.diff(busy_time(*phases.waits, edges)) for phases in data.phases.values()]
    wait = np.sum(waits, axis=0) / width / len(waits)
    return {
        "stripBusy": _byte((busy / width[:, None] / threads).ravel()),
        "stripWait": _byte(wait),
    }


def busy_in_bins(
    start: np.ndarray, end: np.ndarray, family: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """Summed time of spans inside each bin, by family: [bins, families], whole ns.

    Args:
      start, end, family: of each span. edges: of equal bins that hold all spans, rounded down.
    """
    families = len(colors.FAMILIES)
    # one bin more holds what begins or ends at the last edge
    until = np.append(edges[1:], edges[-1])
    opened = np.zeros((len(until), families), np.int64)
    busy = np.zeros((len(until), families))
    for sign, moment in ((1, start), (-1, end)):
        # the last edge that is no later
        place = np.searchsorted(edges, moment, side="right") - 1
        of = place * families + family
        opened += sign * np.bincount(of, minlength=opened.size).reshape(opened.shape)
        rest = np.bincount(of, until[place] - moment, minlength=opened.size)
        busy += sign * rest.reshape(opened.shape)
    # what was open before the bin fills it, less what of it ends inside
    before = np.cumsum(opened, axis=0)[:-1]
    busy[1:] += before * np.diff(until, prepend=edges[0])[1:, None]
    return busy[:-1]


def _byte(share: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(share, 0, 1) * 255).astype(np.uint8)

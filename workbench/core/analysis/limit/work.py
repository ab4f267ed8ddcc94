"""Work: what an op has to do at least, and how long a core takes for it at its peaks."""

from __future__ import annotations

import dataclasses

from workbench.core.analysis.limit.peaks import MULTIPLIED, Peaks

_NS = 1e9
# Floating-point operations of a multiply-add.
_OF_MULTIPLY_ADD = 2


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What one run of an op does at least.

    Attributes:
      flops: floating-point operations; a multiply-add is two.
      dtype: of their numbers.
      cached_bytes: read and written, each tensor once, of what may lie in a cache.
      memory_bytes: likewise, of what fits in none.
      cached_lines: of 64 bytes in no order, of what fits in a cache but not in a core's own.
      lines: of 64 bytes in no order, of what fits in no cache.
      fields: of text.
    """

    flops: float = 0.0
    dtype: str = "float32"
    cached_bytes: float = 0.0
    memory_bytes: float = 0.0
    cached_lines: float = 0.0
    lines: float = 0.0
    fields: float = 0.0

    @property
    def bytes(self) -> float:
        """All bytes, those of lines included."""
        return self.cached_bytes + self.memory_bytes + LINE_BYTES * (self.cached_lines + self.lines)


LINE_BYTES = 64
# What a core's own cache holds; what more there is lies in one that cores share.
OWN_BYTES = 1 << 20
# What bounds an op.
NOTHING, PRODUCTS, CACHE, MEMORY, CACHED_LINES, LINES, TEXT = (
    *("nothing", "multiply-adds", "cache", "memory"),
    *("random reads of a cache", "random reads", "text"),
)


def least_ns(work: Work, peaks: Peaks) -> tuple[float, str]:
    """Core time of some work at a machine's peaks, and what bounds it.

    A core multiplies while it reads, so the longer one of both counts.
    """
    rate = peaks.multiply_adds.get(work.dtype if work.dtype in MULTIPLIED else "float32", 0.0)
    near = min(work.cached_bytes, float(OWN_BYTES * peaks.cores))
    moved = {
        CACHE: near / peaks.cached_bytes + (work.cached_bytes - near) / peaks.shared_bytes,
        MEMORY: work.memory_bytes / peaks.memory_bytes,
        CACHED_LINES: work.cached_lines / peaks.cached_lines,
        LINES: work.lines / peaks.lines,
    }
    largest = max(moved, key=moved.__getitem__)
    times = {
        PRODUCTS: work.flops / (_OF_MULTIPLY_ADD * rate),
        largest: sum(moved.values()),
        TEXT: work.fields / peaks.fields,
    }
    bound = max(times, key=times.__getitem__)
    return times[bound] * _NS, bound if times[bound] else NOTHING

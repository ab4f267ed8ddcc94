"""Which ops split their work among the intra-op threads."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

# Their kernels run on the thread that calls them: parsers, strings and tables, what is sparse or
# unique, and what only waits. Measured on a DLRM and a DIN, 2 cores: beside another op they take
# 1.0 to 1.2 times as long as alone, all others 1.3 to 2.
_ONE_THREAD = re.compile(
    r"Sparse|Unique|SegmentSum|SegmentMean|Where$|DynamicPartition|DynamicStitch|ParallelDynamic"
    r"|String|AsString|Regex|Substr|Unicode|Lookup|HashTable|Decode|Parse|Read|Iterator|Dataset"
    r"|Queue|Stage|PyFunc|EagerPyFunc|Gather|ScatterNd|OneHot|Bucketize|TopK|Ragged|WorkbenchBuffer"
)
# Shorter ops are not worth splitting.
_SHORT_NS = 100_000.0


def splits_work(ops: Sequence[str], span_ns: np.ndarray) -> np.ndarray:
    """Which nodes use several cores when they can, bool [nodes].

    Args:
      ops: type of each node.
      span_ns: float64 [nodes], time of each run of them.
    """
    one = {op: bool(_ONE_THREAD.match(op.removeprefix("Resource"))) for op in set(ops)}
    split: np.ndarray = ~np.array([one[op] for op in ops], bool) & (span_ns > _SHORT_NS)
    return split

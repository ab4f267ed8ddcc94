"""Stale reads: the edges by which lookups read their tables, which may be cut if rows may be stale.

What a lookup reads of variables are rows at ids of the batch. Whole variables, such as the weights
of a MatMul, are read on the compute side in any case.
"""

from __future__ import annotations

import numpy as np

from workbench.core.graph import op_types
from workbench.core.graph.graph_view import CAPTURED_VARIABLE, GraphView


def stale_reads(view: GraphView) -> tuple[int, ...]:
    """The edges from variables into lookups, as rows of `view.data`.

    Between the two may be what gives a variable on as it is, as long as that waits for nothing
    else. Of an EmbeddingVariable a lookup also reads the rows that new keys get, and the step's
    number; it makes rows and counts keys, once for each batch and in the batches' order, as always.
    """
    data = view.data
    waits = view.mask(view.control[:, 1])
    gives_on = view.mask(n for n, op in enumerate(view.ops) if op in op_types.READS_WHOLE) & ~waits
    lookups = view.mask(n for n, op in enumerate(view.ops) if op in op_types.LOOKUPS)
    straight = view.mask(_tables(view))
    while True:
        further = view.mask(data[straight[data[:, 0]] & gives_on[data[:, 2]], 2]) & ~straight
        if not further.any():
            reads = straight[data[:, 0]] & lookups[data[:, 2]]
            return tuple(np.flatnonzero(reads).tolist())
        straight |= further


def _tables(view: GraphView) -> list[int]:
    kinds = op_types.VARIABLES | {op_types.EMBEDDING_VARIABLE}
    captured = [node for node, kind in view.captures.items() if kind == CAPTURED_VARIABLE]
    return [*(node for node, op in enumerate(view.ops) if op in kinds), *captured]

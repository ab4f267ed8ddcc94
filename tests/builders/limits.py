"""Traces that know their shapes, and a machine whose peaks are round numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from tests.builders.traces import make_trace
from workbench.core.analysis.limit.peaks import Peaks
from workbench.core.trace.trace import Trace

# In ns of a core: a multiply-add, a byte of its own cache, 2 of a shared one, 10 of memory; 20 a
# line of a cache, 100 of memory, 50 a field of text.
PEAKS = Peaks(
    cores=2,
    multiply_adds={"float32": 1e9, "float64": 0.5e9},
    cached_bytes=1e9,
    shared_bytes=5e8,
    memory_bytes=1e8,
    cached_lines=5e7,
    lines=1e7,
    fields=2e7,
)
TRACKS = (
    ("Main step", "step", 0, ""),
    ("Inter-op 0", "inter_op", 0, ""),
    ("Inter-op 1", "inter_op", 1, ""),
)
PRODUCT = "a=float32[10,20] b=float32[20,5]"
MADE = "float32[10,5]"


def with_shapes(trace: Trace, shapes: Mapping[str, tuple[str, str]]) -> Trace:
    """A trace whose nodes of these names read and made what is said."""
    names = trace.nodes["name"].tolist()
    inputs, outputs = ([shapes.get(name, ("", ""))[i] for name in names] for i in (0, 1))
    return dataclasses.replace(trace, nodes=trace.nodes.assign(inputs=inputs, outputs=outputs))


def product_trace(**meta: Any) -> Trace:
    """A step of 10 µs on two cores: a product of 1,000 multiply-adds takes 4 µs, at 1–5 µs.

    Another one runs beside it at 2–4 µs. A third is ready at 5 µs and runs at 6–9 µs, alone. The
    step has begun at 0, and returns at 10.
    """
    trace = make_trace(
        [(1000, 4000, 0, 0, 1, 1), (2000, 2000, 0, 1, 2, 1), (6000, 3000, 1000, 2, 1, 1)],
        nodes=[("one", "MatMul"), ("two", "MatMul"), ("three", "Relu")],
        tracks=TRACKS,
        runs=[(0, 1, 0, 10_000)],
        edges=[(0, 2, 0)],
        **{"cores": 2, **meta},
    )
    return with_shapes(trace, {"one": (PRODUCT, MADE), "two": (PRODUCT, MADE), "three": ("", MADE)})

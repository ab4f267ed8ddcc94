"""Findings of a trace by their keys."""

from __future__ import annotations

import dataclasses

from workbench.core.analysis.findings.find import find
from workbench.core.analysis.findings.finding import Finding
from workbench.core.trace.trace import Trace


def keys(trace: Trace) -> list[str]:
    """What is found, in its order."""
    return [each.key for each in find(trace)]


def of(trace: Trace, key: str) -> Finding:
    """The finding of a kind."""
    return next(each for each in find(trace) if each.key == key)


def plain(text: str) -> str:
    """A sentence with plain spaces."""
    return text.replace("\u00a0", " ").replace("\u2009", " ")


def with_fusable(trace: Trace, **parts: tuple[str, ...]) -> Trace:
    """The trace as if rules of fusion had been asked, which fuse some of its nodes.

    Args:
      trace: of which no node is known to be fusable.
      parts: by what a part is called its kind, then the names of its nodes.
    """
    of = {name: (kind, part) for part, (kind, *names) in parts.items() for name in names}
    known = [of.get(name, ("", "")) for name in trace.nodes["name"]]
    kinds, called = zip(*known, strict=True)
    nodes = trace.nodes.assign(fusable=kinds, fusable_part=called)
    meta = dataclasses.replace(trace.meta, not_fusable={})
    return dataclasses.replace(trace, nodes=nodes, meta=meta)


def on_gpu(trace: Trace) -> Trace:
    """The trace with all ops on a GPU."""
    nodes = trace.nodes.assign(device="/job:localhost/replica:0/task:0/device:GPU:0")
    return dataclasses.replace(trace, nodes=nodes)

"""Which tensors of a graph are computed as those of a template are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from workbench.core.fusion.pattern.definition import Definition

_FREE = "Placeholder"


class Match:
    """Tensors of a template, and of a graph the tensors that are alike.

    A placeholder of the template stands for any tensor of its rank and width, a constant for one of
    its value, and a node for one of its op and attributes whose inputs are alike; Identities count
    nowhere.

    Args:
      template, graph: both were made with shapes.
      any_number: constants of the template that stand for any constant.
      known: of placeholders of the template, the tensors that they stand for, whatever their shape.
      waits: whether nodes of the graph that wait for others may be alike.
    """

    def __init__(
        self,
        template: Definition,
        graph: Definition,
        *,
        any_number: frozenset[str] = frozenset(),
        known: Mapping[str, str] | None = None,
        waits: bool = True,
    ) -> None:
        self._template = template
        self._graph = graph
        self._any_number = any_number
        self._waits = waits
        self._found = dict(known or {})

    def __getitem__(self, tensor: str) -> str:
        """The tensor of the graph that one of the template stands for."""
        return self._found[self._template.same(tensor)]

    def __contains__(self, tensor: str) -> bool:
        return self._template.same(tensor) in self._found

    def holds(self, tensor: str) -> bool:
        """Whether a tensor of the template is known to be computed by a node like its own."""
        return tensor in self and self._template.source(self._template.same(tensor)).op not in (
            _FREE,
            "Const",
        )

    @property
    def nodes(self) -> set[str]:
        """Names of the graph's nodes that nodes of the template stand for, not of free tensors."""
        return {
            self._graph.source(found).name
            for tensor, found in self._found.items()
            if self._template.source(tensor).op != _FREE
        }

    def copy(self) -> Match:
        """One that grows by itself."""
        return Match(
            self._template,
            self._graph,
            any_number=self._any_number,
            known=self._found,
            waits=self._waits,
        )

    def add(self, tensor: str, like: str) -> bool:
        """Whether a tensor of the graph is like one of the template; else nothing is added."""
        before = dict(self._found)
        if self._alike(tensor, like):
            return True
        self._found = before
        return False

    def others_in_sum(self, terms: Iterable[str], total: Any) -> tuple[str, ...] | None:
        """What a sum of the graph adds beside some terms; None, with nothing added, without one.

        Args:
          terms: of the template.
          total: the node that adds.
        """
        before = dict(self._found)
        left = [self._graph.same(each) for each in self._graph.inputs(total)]
        for term in terms:
            same = next((each for each in left if self.add(term, each)), None)
            if same is None:
                self._found = before
                return None
            left.remove(same)
        return tuple(left)

    def add_computed(self) -> None:
        """Adds what the graph computes as the template does with what is known, needed or not."""
        for tensor in self._template.computed:
            node = self._template.source(tensor)
            # What reads free tensors alone may belong to something else.
            read = (each for each in self._template.inputs(node) if self.holds(each))
            if tensor in self or (first := next(read, None)) is None:
                continue
            for reader in self._graph.readers(self[first], node.op):
                if self.add(tensor, f"{reader.name}:0"):
                    break

    def _alike(self, tensor: str, like: str) -> bool:
        tensor, like = self._template.same(tensor), self._graph.same(like)
        if tensor in self._found:
            return self._found[tensor] == like
        self._found[tensor] = like
        ours, theirs = self._template.source(tensor), self._graph.source(like)
        if ours.op == _FREE:
            return self._as_wide(tensor, like)
        if not self._waits and any(text.startswith("^") for text in theirs.input):
            return False
        if ours.op == "Const":
            return self._same_number(tensor, like)
        inputs, others = self._template.inputs(ours), self._graph.inputs(theirs)
        return (
            ours.op == theirs.op
            and tensor.rpartition(":")[2] == like.rpartition(":")[2]
            and len(inputs) == len(others)
            and _attributes(ours) == _attributes(theirs)
            and all(map(self._alike, inputs, others))
        )

    def _as_wide(self, tensor: str, like: str) -> bool:
        ours, theirs = self._template.shape(tensor), self._graph.shape(like)
        if ours is None or theirs is None:
            return False
        return len(ours) == len(theirs) and ours[-1] == theirs[-1]

    def _same_number(self, tensor: str, like: str) -> bool:
        found, wanted = self._graph.value(like), self._template.value(tensor)
        if found is None or wanted is None or found.dtype != wanted.dtype:
            return False
        return found.shape == wanted.shape and (
            tensor in self._any_number or np.array_equal(found, wanted)
        )


def _attributes(node: Any) -> dict[str, bytes]:
    """What a node computes by; names with an underscore say where, and by whom."""
    return {
        name: value.SerializeToString()
        for name, value in node.attr.items()
        if not name.startswith("_")
    }

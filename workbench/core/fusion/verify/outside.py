"""Which ops a private session cannot run again: what they do is outside it, or is not copied."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from workbench.core.fusion.checks.effects import has_effect
from workbench.core.fusion.pattern.definition import Definition
from workbench.core.graph.op_families import UPDATE, family_of
from workbench.core.graph.op_types import (
    EMBEDDING_VARIABLE,
    INPUT_HANDLES,
    MUTABLE_TABLES,
    PLACEHOLDERS,
    SOURCES,
    VARIABLES,
)

ITERATORS = frozenset({"IteratorGetNext", "IteratorGetNextSync"})
MAKES_ITERATOR = "MakeIterator"
FILLS_TABLE = re.compile(r"InitializeTable|LookupTableImport")
RANDOM = re.compile(r"Random|Multinomial|TruncatedNormal|ParameterizedTruncated|\w*Sampler$")
# What they do ends with the run, or with the session.
_INSIDE = re.compile(
    r"(Stateful)?PartitionedCall|(Stateless)?(If|While|Case)$|For$|Stack|TensorArray|Iterator"
    r"|\w*Dataset|MakeIterator|\w*HashTable|InitializeTable|LookupTable|Assert|CheckNumerics"
    r"|Stateful\w*|Rng|Anonymous|Dummy|NoOp|ReduceDataset|_?Arg|_?Retval"
)
_RUNS_PYTHON = re.compile(r"(Eager)?PyFunc")
_VALUES_KNOWN = frozenset({"VarHandleOp", "Variable", "VariableV2"})


def outside(graph: Definition, name: str) -> str:
    """Why a private session cannot run a node as the user's does, a clause; "" where it can."""
    node = graph.nodes[name]
    reason = _reason(node)
    if reason:
        return reason
    for inner in _called(graph, node):
        if has_outside_effect(inner.op):
            return f"{node.op} {name!r} runs {inner.op}, which acts outside the session"
    return ""


def has_outside_effect(op: str) -> bool:
    """Whether an op acts on something that is no variable, batch or random number."""
    if _RUNS_PYTHON.match(op):
        return True
    known = family_of(op) == UPDATE or op in SOURCES or RANDOM.match(op) or _INSIDE.match(op)
    return has_effect(op) and not known and op not in INPUT_HANDLES and op not in PLACEHOLDERS


def _reason(node: Any) -> str:
    if node.op in MUTABLE_TABLES or node.op == EMBEDDING_VARIABLE:
        return f"what {node.op} {node.name!r} holds is not copied"
    if node.op in VARIABLES and node.op not in _VALUES_KNOWN:
        return f"what {node.op} {node.name!r} holds is not copied"
    if node.op in SOURCES and node.op not in ITERATORS:
        return f"{node.op} {node.name!r} takes its batch from outside; feed its tensors"
    if node.op in ("Placeholder", "PlaceholderV2"):
        return f"placeholder {node.name!r} has no value; feed it"
    if has_outside_effect(node.op):
        return f"{node.op} {node.name!r} acts outside the session"
    return ""


def _called(graph: Definition, node: Any) -> Iterator[Any]:
    """The nodes of the functions that a node calls."""
    waiting, seen = [node], set()
    while waiting:
        for attribute in waiting.pop().attr.values():
            functions = [attribute.func, *attribute.list.func]
            for name in {each.name for each in functions} & graph.functions.keys():
                if name not in seen:
                    seen.add(name)
                    inner = graph.functions[name].node_def
                    waiting += inner
                    yield from inner

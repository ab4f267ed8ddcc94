"""Names that say nothing, and how long a reader has to keep them in mind."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

WORDS = frozenset({"asked", "each", "found", "made", "own", "told"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclasses.dataclass(frozen=True, kw_only=True, order=True)
class NameSpan:
    """A local name or an argument.

    Attributes:
      line: where it appears first, from 1.
      name: one of WORDS.
      lines: from there to where it appears last, both included; 0 of a function, a class's
        attribute and a module's name, which are known everywhere.
    """

    line: int
    name: str
    lines: int


def spans(source: str) -> Iterator[NameSpan]:
    """Where a module of Python uses names of WORDS."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            if node.name.strip("_") in WORDS:
                yield NameSpan(line=node.lineno, name=node.name, lines=0)
            yield from _local(node)
        elif isinstance(node, (ast.ClassDef, ast.Module)):
            yield from _everywhere(node)


def _everywhere(node: ast.ClassDef | ast.Module) -> Iterator[NameSpan]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            targets = statement.targets if isinstance(statement, ast.Assign) else []
        for target in targets:
            if isinstance(target, ast.Name) and target.id.strip("_").lower() in WORDS:
                yield NameSpan(line=target.lineno, name=target.id, lines=0)


def _local(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[NameSpan]:
    lines: dict[str, list[int]] = {}
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        name = getattr(node, "id", getattr(node, "arg", None))
        if isinstance(node, (ast.Name, ast.arg)) and name in WORDS:
            lines.setdefault(str(name), []).append(node.lineno)
        waiting += ast.iter_child_nodes(node)
    for name, used in lines.items():
        yield NameSpan(line=min(used), name=name, lines=max(used) - min(used) + 1)

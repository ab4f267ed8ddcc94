"""Docstrings of the public names, as plain text for the check of sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

_SECTION = re.compile(r"^\s*(Args|Attributes|Raises|Returns|Yields):\s*$", re.M)
# "name: what it is" of a section, where the text of each begins.
_ENTRY = re.compile(r"^\s+[\w*`, .-]+:\s+", re.M)
# An example, which is indented by four and follows a colon.
_EXAMPLE = re.compile(r"::?\n\n(?:(?:[ ]{4,}.*)?\n)+")


def public_docstrings(package: Path) -> Iterator[tuple[str, str]]:
    """The names that `__init__.pyi` lists, and their classes' public methods, with docstrings.

    Args:
      package: the folder of the package.
    """
    listed = ast.parse((package / "__init__.pyi").read_text("utf-8"))
    for statement in listed.body:
        if isinstance(statement, ast.ImportFrom) and statement.module:
            file = package.parent / f"{statement.module.replace('.', '/')}.py"
            if file.is_file():
                names = {alias.name for alias in statement.names}
                yield from _of_module(ast.parse(file.read_text("utf-8")), names)


def _of_module(module: ast.Module, names: set[str]) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            yield from _with_text(node, node.name)
        if isinstance(node, ast.ClassDef) and node.name in names:
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield from _with_text(member, f"{node.name}.{member.name}")


def _with_text(node: ast.FunctionDef | ast.ClassDef, name: str) -> Iterator[tuple[str, str]]:
    text = ast.get_docstring(node)
    if text:
        yield name, text


def paragraphs(docstring: str) -> str:
    """A docstring as a page: a paragraph for each entry of a section, without examples."""
    text = _EXAMPLE.sub("\n\n", docstring + "\n")
    return _ENTRY.sub("\n\n", _SECTION.sub("", text))

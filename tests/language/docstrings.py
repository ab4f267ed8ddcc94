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
    for module, names in _imports(package / "__init__.pyi"):
        if module == package.name:
            # A group of names is a module that imports them.
            for group in names:
                for inner, grouped in _imports(package / f"{group}.py"):
                    yield from _of_module(package.parent, inner, grouped)
        else:
            yield from _of_module(package.parent, module, names)


def _imports(file: Path) -> Iterator[tuple[str, set[str]]]:
    """The modules that a file imports names from, with the names; nothing where it is not there."""
    for statement in ast.parse(file.read_text("utf-8")).body if file.is_file() else ():
        if isinstance(statement, ast.ImportFrom) and statement.module:
            yield statement.module, {alias.name for alias in statement.names}


def _of_module(home: Path, module: str, names: set[str]) -> Iterator[tuple[str, str]]:
    place = home / module.replace(".", "/")
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    tree = ast.parse(file.read_text("utf-8"))
    for node in tree.body:
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

"""A toggle of TensorFlow's is one module: no consumer names it."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import workbench
from workbench.core.toggles.stock import STOCK

PACKAGE = Path(workbench.__file__).parent
# Beside a toggle's own module: the list, the public names, and what excludes what.
LISTS = {
    "core/toggles/stock/__init__.py",
    "toggles.py",
    "experiments/program/refusals.py",
}
# Of code that has to do with toggles; elsewhere a name such as "precision" is another thing.
OF_TOGGLES = re.compile("toggle|optimizations", re.IGNORECASE)


def identifiers_and_texts(source: str) -> tuple[set[str], set[str]]:
    """What code names, and the texts in it."""
    names, texts = set(), set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=found) | ast.Attribute(attr=found) | ast.alias(name=found):
                names.add(found)
            case ast.Constant(value=str(found)):
                texts.add(found)
    return names, texts


def says(source: tuple[set[str], set[str]], toggle: str) -> bool:
    """Whether code names a toggle: its value, its name as a text, or its name with a choice."""
    names, texts = source
    with_choice = re.compile(rf"(?<!\w){toggle}=")
    return toggle.upper() in names or toggle in texts or any(map(with_choice.search, texts))


@functools.cache
def modules() -> dict[str, tuple[set[str], set[str]]]:
    sources = {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}
    return {
        name: identifiers_and_texts(source)
        for name, source in sources.items()
        if OF_TOGGLES.search(source)
    }


@pytest.mark.parametrize("toggle", [each.name for each in STOCK])
def test_a_stock_toggle_is_named_in_its_own_module_and_the_lists(toggle):
    naming = {name for name, source in modules().items() if says(source, toggle)}
    own = f"core/toggles/stock/{toggle}.py"
    assert own in naming
    assert naming <= {own, *LISTS}


@pytest.mark.parametrize(
    ("source", "is_named"),
    [
        ("from x import WARP", True),
        ("toggles.WARP.at(1)", True),
        ('f("warp")', True),
        ('f("a+warp=on")', True),
        ("WARPED = 'unwarp=1 and warp speed'", False),
    ],
)
def test_what_names_a_toggle_is_seen(source, is_named):
    assert says(identifiers_and_texts(source), "warp") == is_named

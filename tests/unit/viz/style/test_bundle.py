"""The modules of `static/`: each imports what it uses, and all fit into one scope."""

from __future__ import annotations

import collections
import graphlib
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.javascript import exports, modules, run
from workbench.viz.style import assets, bundle

_TESTS = Path(__file__).parents[3]
_TOKEN = re.compile(
    r"""//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?P<word>[A-Za-z_$][\w$]*)"""
    r"|\.\.\.|[^\s\w]"
)
_TEXT = re.compile(r"(?:\\.|\$(?!\{)|[^`$\\])*(?P<end>`|\$\{)", re.DOTALL)
_TOP_LEVEL = re.compile(r"^(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


def test_a_module_imports_what_it_uses_and_nothing_else() -> None:
    homes = {name: path for path, names in exports().items() for name in names}
    wrong = {}
    for path, text in modules().items():
        used = set(used_names(bundle.IMPORT.sub("", text)))
        wanted = {(homes[name], name) for name in used & homes.keys() if homes[name] != path}
        imported = {(of, name) for of, names in imports(path, text) for name in names}
        if wanted != imported:
            wrong[path] = {"missing": wanted - imported, "unused": imported - wanted}
    assert wrong == {}


def test_an_import_is_written_once_and_in_the_form_that_is_followed() -> None:
    for path, text in modules().items():
        plain = bundle.EXPORT.sub("", bundle.IMPORT.sub("", text))
        assert not re.search(r"^\s*(?:import|export)\b(?!\()", plain, re.MULTILINE), path
        found = imports(path, text)
        assert all(name.isidentifier() for _, names in found for name in names), path
        assert len({of for of, _ in found}) == len(found), path


def test_what_is_exported_is_used() -> None:
    lists = [names for path, text in modules().items() for _, names in imports(path, text)]
    used = {name for names in lists for name in names}
    # an outlet's last lines and tests name some as well
    for path in (Path(assets.__file__), *_TESTS.rglob("*.py"), *(_TESTS / "js").glob("*.js")):
        used.update(re.findall(r"\w+", path.read_text("utf-8")))
    assert {name for names in exports().values() for name in names} <= used


def test_modules_import_no_circle() -> None:
    graph = {path: [of for of, _ in imports(path, text)] for path, text in modules().items()}
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) == len(graph)


def test_every_module_belongs_to_an_outlet() -> None:
    entries = [entry for outlet in assets.ENTRIES.values() for entry in outlet]
    assert bundle.modules_of(entries).keys() == modules().keys()


@pytest.mark.parametrize("outlets", [*assets.ENTRIES, "boundary timeline frame", "panel frame"])
def test_a_module_stands_behind_what_it_imports(outlets: str) -> None:
    found = bundle.modules_of(
        entry for outlet in outlets.split() for entry in assets.ENTRIES[outlet]
    )
    order = list(found)
    for path, text in found.items():
        assert all(order.index(of) < order.index(path) for of, _ in imports(path, text))


def test_no_name_is_declared_twice() -> None:
    texts = (bundle.EXPORT.sub("", text) for text in modules().values())
    names = collections.Counter(name for text in texts for name in _TOP_LEVEL.findall(text))
    assert [name for name, count in names.items() if count > 1] == []


def test_node_imports_every_module_without_a_page() -> None:
    addresses = {path: (assets.STATIC / path).as_uri() for path in modules()}
    loaded = [f'"{path}": Object.keys(await import("{at}"))' for path, at in addresses.items()]
    found = run([], f"{{{', '.join(loaded)}}}")
    assert found == {path: sorted(names) for path, names in exports().items()}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a(b.c, ...d) // e", ["a", "b", "d"]),
        ("`f ${g ? `${h}` : {i: j}} k` + 'l' + \"m\"", ["g", "h", "j"]),
        ("n ? o : p; const { q: r, s } = t?.u;", ["n", "o", "p", "const", "r", "s", "t"]),
    ],
)
def test_names_are_told_from_properties_and_texts(text: str, names: list[str]) -> None:
    assert list(used_names(text)) == names


def imports(path: str, text: str) -> list[tuple[str, list[str]]]:
    """The paths of the modules that one imports, each with the names."""
    folder = posixpath.dirname(path)
    return [
        (posixpath.normpath(posixpath.join(folder, of)), re.split(r",\s*", names.strip(" \n,")))
        for names, of in bundle.IMPORT.findall(text)
    ]


def used_names(text: str) -> Iterator[str]:
    """Roughly the names that a script uses: its words, but keys, properties, texts and comments."""
    tokens = list(_tokens(text))
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        is_key = before in ("{", ",") and after == ":"
        if token[0].isidentifier() and before != "." and not is_key:
            yield token


def _tokens(text: str) -> Iterator[str]:
    """Words and signs; of a template what stands in its braces."""
    at = 0
    braces: list[int] = []  # how many are open in each template
    while token := _TOKEN.search(text, at):
        at = token.end()
        sign = token[0]
        if braces and sign in "{}":
            braces[-1] += 1 if sign == "{" else -1
        if sign == "`" or (braces and braces[-1] < 0):
            if sign == "}":
                braces.pop()
            words = _TEXT.match(text, at)
            assert words is not None
            at = words.end()
            if words["end"] == "${":
                braces.append(0)
        elif token["word"] or sign[0] not in "\"'/":
            yield sign

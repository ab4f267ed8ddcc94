"""The public names stand once, in the stub, and each is where it says."""

from __future__ import annotations

import ast
import pathlib

import pytest

import workbench

FOLDER = pathlib.Path(workbench.__file__).parent
STUB = ast.parse((FOLDER / "__init__.pyi").read_text(encoding="utf-8"))
NAMES = [
    (str(node.module), alias)
    for node in STUB.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
]


def test_the_package_offers_what_the_stub_lists():
    assert sorted(alias.name for _, alias in NAMES) == workbench.__all__
    assert len(NAMES) > 30 and set(workbench.__all__) <= set(dir(workbench))


@pytest.mark.parametrize(("module", "alias"), NAMES, ids=[alias.name for _, alias in NAMES])
def test_a_name_is_defined_where_the_stub_says(module: str, alias: ast.alias):
    # "import X as X" is how a stub says that it offers X.
    assert alias.asname == alias.name
    if module == "workbench":
        paths = (FOLDER / f"{alias.name}.py", FOLDER / alias.name / "__init__.py")
        assert any(path.is_file() for path in paths)
        return
    file = FOLDER.joinpath(*module.split(".")[1:]).with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert alias.name in [getattr(node, "name", None) for node in tree.body]


@pytest.mark.parametrize("group", ["cluster", "costs"])
def test_a_group_offers_what_it_imports(group: str):
    module = getattr(workbench, group)
    assert module.__all__ and all(callable(getattr(module, name)) for name in module.__all__)
    assert not set(module.__all__) & set(workbench.__all__)


def test_a_name_is_looked_up_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(vars(workbench), "StageOptions", raising=False)
    options = workbench.StageOptions
    assert vars(workbench)["StageOptions"] is options
    assert workbench.models.__name__ == "workbench.models"

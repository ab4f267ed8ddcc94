"""Every public name is there, and is the thing of that name."""

from __future__ import annotations

import types

import pytest

import workbench
from workbench import ops


@pytest.mark.parametrize("package", [workbench, ops], ids=lambda package: package.__name__)
def test_public_names_give_what_they_say(package: types.ModuleType) -> None:
    assert set(package.__all__) <= set(dir(package))
    named = {name: getattr(package, name).__name__.rpartition(".")[2] for name in package.__all__}
    assert named == {name: name for name in package.__all__}
    undescribed = [name for name in package.__all__ if not getattr(package, name).__doc__]
    assert undescribed == []

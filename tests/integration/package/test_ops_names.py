"""`workbench.ops` exports its public functions, each with a docstring that says what it takes."""

import inspect

import pytest

from workbench import ops


def test_every_name_is_there_once_and_in_order():
    assert sorted(set(ops.__all__)) == ops.__all__
    assert ops.fused_safe_embedding_lookup_sparse.__module__.startswith("workbench.ops.")


@pytest.mark.parametrize("name", ops.__all__)
def test_it_says_what_it_takes(name):
    public = getattr(ops, name)
    words = inspect.getdoc(public)
    assert words
    if inspect.isfunction(public):
        assert "Args:" in words
        assert "Raises:" in words
        assert all(name in words for name in inspect.signature(public).parameters)

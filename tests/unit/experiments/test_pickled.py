"""Programs travel as bytes, and their code knows its files on the other side."""

from __future__ import annotations

import sys
import types

import cloudpickle
import pytest

from workbench.experiments.program.pickled import pickled

FACTOR = 3


@pytest.fixture(params=["this one's", "<dynamic-code>"], autouse=True)
def _names(request, monkeypatch):
    """Files are named as this cloudpickle does, or not at all, as releases since 3.1.3 do."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    if request.param == "<dynamic-code>":
        table = cloudpickle.Pickler.dispatch_table
        reduced = table[types.CodeType]

        def nameless(code):
            return reduced(code.replace(co_filename=request.param))

        monkeypatch.setitem(table, types.CodeType, nameless)
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def outer(number):
    def inner(more):
        return (number + more) * FACTOR

    return inner


def test_functions_come_back_with_their_files_and_what_they_use():
    inner = cloudpickle.loads(pickled(outer))(4)
    assert inner(5) == 27
    assert inner.__code__.co_filename == outer.__code__.co_filename == __file__
    assert cloudpickle.loads(pickled(outer(1)))(1) == 6
    assert cloudpickle.loads(pickled(lambda: 1)).__code__.co_filename == __file__


def test_code_does_too():
    code = cloudpickle.loads(pickled(compile("a = 1", "<cell 5>", "exec")))
    assert code.co_filename == "<cell 5>"


def test_what_cannot_be_pickled_is_refused_as_before():
    with pytest.raises(TypeError, match="cannot pickle"):
        pickled(sys._getframe())

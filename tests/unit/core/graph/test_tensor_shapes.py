"""Tensors as text and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.core.graph.tensor_shapes import TensorShape, bytes_of, parsed_shapes, shapes_text

TENSORS = st.builds(
    TensorShape,
    argument=st.from_regex(r"(\w{1,5})?", fullmatch=True),
    dtype=st.sampled_from(["float32", "int64", "string", "bfloat16", "bool"]),
    shape=st.lists(st.integers(0, 10**6), max_size=4).map(tuple),
    is_variable=st.booleans(),
)


@given(st.lists(TENSORS, max_size=5))
def test_text_and_back(tensors):
    assert parsed_shapes(shapes_text(tensors)) == tuple(tensors)


def test_what_it_looks_like():
    table = TensorShape(argument="table", dtype="float32", shape=(10, 4), is_variable=True)
    assert str(table) == "table=&float32[10,4]"
    assert (table.count, table.bytes, table.is_floating) == (40, 160, True)


def test_words_that_are_no_tensors_are_left_out():
    assert [each.shape for each in parsed_shapes("a=float32[2 int64[3] x= [4] float32[]")] == [
        (3,),
        (),
    ]


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 4), ("bfloat16", 2), ("int8", 1), ("bool", 1), ("string", 24), ("int4", 1)],
)
def test_bytes_of_a_type(dtype, size):
    assert bytes_of(dtype) == size

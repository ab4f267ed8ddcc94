"""Values of files: of the type that they have, in bounded memory, refused in one sentence."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import gzip
import tracemalloc
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from workbench.errors import DataError
from workbench.files.saved_columns import NoParquetError, opened
from workbench.files.saved_values import (
    ROOM,
    is_file,
    json_of,
    read_file,
    shown,
    unpacked,
    value_of,
)


class Color(enum.StrEnum):
    RED = "red"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Part:
    name: str
    size: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Whole:
    parts: tuple[Part, ...]
    at: tuple[int, str]
    by_name: Mapping[str, float]
    kind: Literal["a", "b"] = "a"
    color: Color = Color.RED
    rest: Any = None


# Python writes no number of so many digits.
HUGE = 10**5000
GOOD = {"parts": [{"name": "x", "size": 3}], "at": [1, "y"], "by_name": {"z": 2}}


def test_a_value_is_read_field_by_field():
    read = value_of(Whole, {**GOOD, "color": "red", "rest": {"any": [1, "thing"]}}, "it")
    assert read == Whole(
        parts=(Part(name="x", size=3),),
        at=(1, "y"),
        by_name={"z": 2.0},
        rest={"any": [1, "thing"]},
    )
    assert value_of(Whole, {name: GOOD[name] for name in ("parts", "at")}, "it", by_name={}).at


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"parts": None}, "it.parts is None; expected a list"),
        ({"parts": [3]}, "it.parts[0] is 3; expected values by name"),
        ({"parts": [{}]}, "it.parts[0] has no name; the file is damaged, or was cut off"),
        ({"parts": [{"name": 1}]}, "it.parts[0].name is 1; expected text"),
        ({"parts": [{"name": "x", "size": True}]}, "it.parts[0].size is True; expected an integer"),
        ({"parts": [{"name": "x", "size": 2**63}]}, "expected a number of 64 bits"),
        ({"parts": [{"name": "x", "sise": 1}]}, "it.parts[0] has an unknown 'sise'"),
        ({"at": [1]}, "it.at is [1]; expected a list of 2"),
        ({"by_name": []}, "it.by_name is []; expected values by name"),
        ({"by_name": {"z": "2"}}, "it.by_name['z'] is '2'; expected a number"),
        ({"kind": "c"}, "it.kind is 'c'; expected one of 'a', 'b'"),
        ({"kind": ["a"]}, "it.kind is ['a']; expected one of 'a', 'b'"),
        ({"color": "blue"}, "it.color is 'blue'; expected one of 'red'"),
        ({"rest": HUGE}, "it.rest is a int; expected a number of 64 bits"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_does_not_fit_is_named(change, said):
    with pytest.raises(DataError) as caught:
        value_of(Whole, {**GOOD, **change}, "it")
    assert said in str(caught.value)


def test_plain_values_are_not_deeper_than_any_that_is_meant():
    deep: Any = 1
    for _ in range(40):
        deep = [deep]
    with pytest.raises(DataError, match=r"it.rest has lists more than 32 deep inside each other"):
        value_of(Whole, {**GOOD, "rest": deep}, "it")


@pytest.mark.parametrize(
    "value",
    ["x" * 10**6, b"x" * 10**6, [0] * 10**6, {str(i): i for i in range(10**5)}, HUGE],
    ids=["text", "bytes", "list", "mapping", "number"],
)
def test_a_value_of_any_length_is_shown_in_a_few_words(value):
    assert len(shown(value)) <= 60


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "Expecting value"),
        (b"\xff\xfe{}", "can't decode byte"),
        ("\ud800", "it is not UTF-8"),
        ("[" * 100_000, "lists stand too deep inside each other"),
        ("9" * 5000, "digits"),
    ],
)
def test_what_is_no_json_is_said(text, said):
    with pytest.raises(DataError, match=said):
        json_of(text)


def test_half_a_character_is_none_and_bytes_of_a_file_name_stay():
    assert json_of(r'"\ud800 \ud83d\ude00 \\ud800 \udcc3"') == "\ufffd \U0001f600 \\ud800 \udcc3"


def most_memory(call):
    """The most that a call takes that raises a DataError, and what it says."""
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            call()
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


def test_a_packed_file_takes_no_more_than_it_can_have():
    bomb = gzip.compress(bytes(64 << 20)) * 4  # a file of gzip may have many members
    taken, said = most_memory(lambda: unpacked(bomb))
    assert taken <= ROOM + 10 * len(bomb) + (1 << 20)
    assert "unpacks into more than" in said


@pytest.mark.parametrize("text", ["[],", "{},", '"ab",'])
def test_a_text_of_small_values_takes_no_more_than_it_can_have(text):
    bomb = b"[" + text.encode() * 3_000_000 + b"0]"
    tracemalloc.start()
    with contextlib.suppress(DataError):
        json_of(bomb)
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken <= ROOM + 10 * len(bomb)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"no", "not a gzipped file"),
        (gzip.compress(b"x" * 100, mtime=0)[:-9], "it was cut off"),
        (gzip.compress(b"x", mtime=0) + b"rest", "cannot be unpacked"),
    ],
)
def test_what_cannot_be_unpacked_is_said(content, said):
    with pytest.raises(DataError, match=said):
        unpacked(content)


def test_several_members_are_one_file():
    assert unpacked(gzip.compress(b"a", mtime=0) + gzip.compress(b"b") + bytes(5)) == b"ab"


def test_names_that_no_file_can_have(tmp_path):
    assert not is_file("a\0b") and not is_file("x" * 5000)
    for name in ("a\0b", "x" * 5000, tmp_path, tmp_path / "none"):
        with pytest.raises(DataError):
            read_file(name)
    (tmp_path / "large").write_bytes(bytes(11))
    with pytest.raises(DataError, match="it is larger than 10 bytes"):
        read_file(tmp_path / "large", 10)


def test_many_equal_rows_are_not_read(tmp_path):
    path = tmp_path / "x.parquet"
    rows = pa.chunked_array([pa.array(np.zeros(10_000_000, np.int64))] * 4)
    pq.write_table(pa.table({"a": rows}), path)
    with opened(path) as file:
        before = pa.total_allocated_bytes()
        with pytest.raises(DataError, match=r"would take 320000000 of memory; expected at most"):
            file.read(["a"])
        assert pa.total_allocated_bytes() - before < ROOM


def test_texts_of_bytes_that_are_none_are_damage(tmp_path):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"a": ["abcdefgh"]}).to_parquet(path, compression=None)
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abc\xff\xfffgh"))
    with opened(path) as file, pytest.raises(DataError):
        file.read(["a"])


@pytest.mark.parametrize("content", [b"", b"no", b"PAR1" + bytes(40) + b"PAR1"])
def test_what_is_no_parquet_file(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(NoParquetError), opened(tmp_path / "x"):
        pass

"""Parquet beside text: the same rows come back, and each mistake has its own line."""

from __future__ import annotations

import dataclasses
import decimal
import gzip
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.containers import SMALL, write_parquet
from workbench.errors import DataError
from workbench.models.data import parquet, text_table
from workbench.models.data.containers import check_file, container_of, line_blocks
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.data.table_format import CheckedTable
from workbench.models.data.taobao import (
    check_dssm,
    check_sequences,
    generate_dssm,
    generate_sequences,
)
from workbench.models.data.text_table import check_table

GOOD = {
    "label": [1, 0, 0],
    "N": [1.5, None, 3.0],
    "C": ["a", "", None],
    "L": [["x", "y"], [], ["z"]],
}


@pytest.fixture
def small(tmp_path):
    """Writes columns, some of them changed or left off, as Parquet and gives the path."""

    def write(**changes) -> Path:
        columns = {k: v for k, v in {**GOOD, **changes}.items() if v is not None}
        path = tmp_path / "clicks.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    return write


def refusal(path, layout=SMALL, rows=None) -> str:
    with pytest.raises(DataError) as caught:
        check_file(path, layout, rows=rows)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def text(table: CheckedTable) -> bytes:
    return b"".join(line_blocks(table))


@pytest.mark.parametrize(
    ("generate", "check"),
    [(generate_criteo, check_criteo), (generate_dssm, check_dssm),
     (generate_sequences, check_sequences)],
)  # fmt: skip
def test_generated_rows_come_back_from_parquet(tmp_path, monkeypatch, generate, check):
    monkeypatch.setattr(parquet, "_READ_ROWS", 1000)
    checked = check(generate(tmp_path / "log.txt", rows=2500))
    written = write_parquet(checked, tmp_path / "new" / "log.parquet")
    assert check(written.path) == written
    assert (written.rows, written.more, written.container) == (2500, False, "parquet")
    assert text(written) == text(checked) == checked.path.read_bytes()


def test_only_the_checked_rows_are_written_and_read(tmp_path):
    path = generate_criteo(tmp_path / "log.tsv", rows=50)
    written = write_parquet(check_criteo(path, rows=20), tmp_path / "log.parquet")
    assert pq.read_metadata(written.path).num_rows == written.rows == 20
    few = check_criteo(written.path, rows=7)
    assert (few.rows, few.more) == (7, True)
    assert text(few).splitlines() == path.read_bytes().splitlines()[:7]
    assert check_criteo(written.path, rows=99).rows == 20


def test_windows_line_ends_are_left_off(tmp_path):
    path = generate_criteo(tmp_path / "log.tsv", rows=5)
    windows = tmp_path / "windows.tsv"
    windows.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").removesuffix(b"\r\n"))
    checked = check_criteo(windows)
    written = write_parquet(checked, tmp_path / "log.parquet")
    assert text(checked) == text(written) == path.read_bytes()


@pytest.mark.parametrize("block", [1, 300, 4000])
def test_lines_are_cut_where_the_checked_rows_end(tmp_path, monkeypatch, block):
    monkeypatch.setattr(text_table, "_BLOCK_BYTES", block)
    path = generate_criteo(tmp_path / "log.tsv", rows=30)
    lines = path.read_bytes().splitlines(keepends=True)
    assert text(check_criteo(path, rows=20)) == b"".join(lines[:20])
    assert text(check_criteo(path)) == b"".join(lines)


def test_quotes_are_letters(tmp_path):
    lines = b'1\t2\t"a\t"x"|y\n0\t3\t"b"\t"\n'
    (tmp_path / "log.tsv").write_bytes(lines)
    written = write_parquet(check_table(tmp_path / "log.tsv", SMALL), tmp_path / "log.parquet")
    assert text(written) == lines


def test_columns_have_types_of_their_own(tmp_path):
    checked = check_dssm(generate_dssm(tmp_path / "log.csv", rows=200))
    table = pq.read_table(write_parquet(checked, tmp_path / "log.parquet").path)
    assert table.schema.field("clk").type == pa.float32()
    assert table.schema.field("user_id").type == pa.string()
    tags = table.column("tag_category_list").to_pylist()
    assert [] in tags and max(map(len, tags)) == 5
    numbers = check_criteo(generate_criteo(tmp_path / "log.tsv", rows=200))
    assert pq.read_table(write_parquet(numbers, tmp_path / "b.parquet").path)["I1"].null_count > 50


NUMBERS = st.one_of(
    st.just(""),
    st.integers(-(10**12), 10**12).map(str),
    st.floats(-(2.0**100), 2.0**100, width=32).map(repr),
    st.from_regex(r"-?([0-9]{1,6}\.?[0-9]{0,6}|\.[0-9]{1,6})([eE][+-]?[0-9]{1,2})?", fullmatch=True)
    .filter(lambda shown: abs(float(shown)) < 3e38),
)  # fmt: skip
WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0|"), max_size=5
)
LISTS = st.lists(WORDS.filter(bool), max_size=3).map("|".join)


@given(rows=st.lists(st.tuples(st.sampled_from("01"), NUMBERS, WORDS, LISTS), min_size=1))
def test_any_text_comes_back_with_the_same_values(tmp_path_factory, rows):
    home = tmp_path_factory.mktemp("log")
    (home / "log.tsv").write_bytes("".join("\t".join(row) + "\n" for row in rows).encode())
    written = write_parquet(check_table(home / "log.tsv", SMALL), home / "log.parquet")
    check_file(written.path, SMALL)
    found = [tuple(line.split("\t")) for line in text(written).decode().split("\n")[:-1]]
    assert [(r[0], r[2], r[3]) for r in found] == [(r[0], r[2], r[3]) for r in rows]
    for (_, shown, *_), (_, given_, *_) in zip(found, rows, strict=True):
        assert (shown == "") == (given_ == "")
        assert np.float32(shown or 0) == np.float32(given_ or 0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("label", pa.array([True, False, False])),
        ("label", pa.array([1.0, 0.0, 0.0], pa.float64())),
        ("N", pa.array([1, None, 3], pa.int64())),
        ("N", pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("3.00")])),
        ("N", pa.nulls(3)),
        ("C", pa.array([81, None, 7], pa.int64())),
        ("C", pa.array(["a", "b", None]).dictionary_encode()),
        ("C", pa.array(["a", "b", None], pa.large_string())),
        ("C", pa.array([b"a", b"b", None], pa.binary())),
        ("L", pa.array(["x|y", "", None])),
        ("L", pa.array([[1, 2], None, []], pa.list_(pa.int64()))),
        ("L", pa.array([["x"], None, []], pa.large_list(pa.large_string()))),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_columns_of_any_type_that_has_a_text_are_taken(small, name, values):
    checked = check_file(small(**{name: values}, other=[{"a": 1}] * 3), SMALL)
    assert checked.rows == 3
    first = text(checked).split(b"\n")[0].split(b"\t")
    expected = {"label": b"1", "N": b"1.5", "C": b"a", "L": b"x|y"}
    assert len(first) == 4 and all(
        float(found) == float(expected[c.name]) if c.kind == "label" else found == expected[c.name]
        for c, found in zip(SMALL.columns, first, strict=True)
        if c.name != name
    )


def test_the_order_of_columns_does_not_matter(small, tmp_path):
    path = tmp_path / "turned.parquet"
    table = pq.read_table(small())
    pq.write_table(table.select(table.schema.names[::-1]), path)
    assert text(check_file(path, SMALL)) == text(check_file(small(), SMALL))


def test_a_missing_column_is_named(small):
    assert refusal(small(N=None)) == (
        ": has no column 'N'; expected one of each of label, N, C, L; it has 'label', 'C', 'L'"
    )


def test_of_many_columns_a_few_are_listed(tmp_path):
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table({f"x{i}": [1] for i in range(11)}), path)
    assert refusal(path).endswith("'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7' and 3 more")


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("C", [{"a": 1}] * 3, "struct<a: int64>; expected string"),
        ("N", ["1", "2", "3"], "string; expected float"),
        ("L", [1, 2, 3], "int64; expected list<element: string> or text"),
    ],
)
def test_a_column_of_another_type_is_refused(small, name, values, said):
    found = refusal(small(**{name: values}))
    assert found.replace("item: string", "element: string") == f", column {name}: is of type {said}"


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("label", [1, 2, 0], "row 2, column label: '2' is no label; expected 0 or 1"),
        ("label", [1, 0, None], "row 3, column label: '' is no label; expected 0 or 1"),
        ("N", [1.0, float("nan"), 2.0], "row 2, column N: 'nan' is not a number; leave the field"),
        ("N", [1.0, 2.0, float("inf")], "row 3, column N: 'inf' is not a number; leave the field"),
        ("C", ["a", "b\tc", "d"], "row 2, column C: 'b\\tc' holds a separator; expected none of "),
        ("C", ["a\nb", "c", "d"], "row 1, column C: 'a\\nb' holds a separator; expected none of "),
        ("C", ["a", "b", "c\0"], "row 3: has a NUL byte"),
        ("L", [["a"], [], ["b", "c|d"]], "row 3, column L: 'c|d' holds a separator; expected none"),
        ("L", [["a"], ["b", None], []], "row 2, column L: holds a null; expected a list without"),
        ("L", [[], ["b", ""], []], "row 2, column L: value 2 of 2 is empty"),
        ("L", [["a"], [], list("abcd")], "row 3, column L: 4 values; expected at most 3"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("at_once", [1, 2, 1000])
def test_a_mistake_names_row_and_column(small, monkeypatch, at_once, name, values, said):
    monkeypatch.setattr(parquet, "_CHECKED_ROWS", at_once)
    assert refusal(small(**{name: values})).startswith(f", {said}")


def test_only_the_rows_that_are_read_are_checked(small):
    assert check_file(small(label=[0, 1, 7]), SMALL, rows=2).more


def test_bytes_that_are_no_text_are_refused(small):
    said = refusal(small(C=pa.array([b"a", b"\xff", b"c"])))
    assert said.startswith(", behind row 0: cannot be read: Invalid UTF8")


def test_no_rows_are_refused(tmp_path, small):
    path = tmp_path / "none.parquet"
    pq.write_table(pq.read_table(small()).slice(0, 0), path)
    assert refusal(path) == ": has no rows; expected rows of label, N, C, L"
    assert refusal(small(), rows=0) == ": asked to read 0 rows; expected at least 1"


def test_a_damaged_file_is_refused(small, tmp_path):
    whole = small().read_bytes()
    path = tmp_path / "cut.parquet"
    path.write_bytes(whole[:-20])
    assert refusal(path).startswith(": is no Parquet file: ")
    # The first page of the first column.
    path.write_bytes(whole[:4] + b"\xff" * 16 + whole[20:])
    assert refusal(path).startswith(", behind row 0: cannot be read: ")


def test_what_a_file_is_does_not_depend_on_its_name(small, tmp_path):
    assert container_of(small()) == ("parquet", "")
    path = tmp_path / "log.parquet"
    path.write_text("0\t1\ta\tb\n")
    assert container_of(path) == ("text", "")
    assert check_file(path, SMALL).container == "text"
    assert container_of(tmp_path / "missing") == ("text", "")
    # CRC-32C of eight zero bytes is 0x8c28b28a.
    crc = 0x8C28B28A
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    path.write_bytes(bytes(8) + struct.pack("<I", masked))
    assert container_of(path) == ("tfrecord", "")
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert container_of(path) == ("tfrecord", "gzip")


def test_rows_of_unknown_columns_are_refused(tmp_path):
    lines = CheckedTable(path=tmp_path / "log.txt", rows=1, more=False)
    with pytest.raises(DataError) as caught:
        line_blocks(dataclasses.replace(lines, container="parquet"))
    assert str(caught.value) == (
        f"{tmp_path / 'log.txt'}: its columns are not known; use what `check_file` returned for it"
    )


def test_parquet_loads_no_tensorflow(tmp_path):
    code = (
        "import pathlib, sys\n"
        "from workbench.models.data.criteo import check_criteo, generate_criteo\n"
        f"home = {str(tmp_path)!r}\n"
        "data = check_criteo(generate_criteo(home + '/a.tsv', rows=10))\n"
        "assert not {'tensorflow', 'pyarrow'} & set(sys.modules)\n"
        "from tests.builders.containers import write_parquet\n"
        "check_criteo(write_parquet(data, pathlib.Path(home, 'a.parquet')).path)\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

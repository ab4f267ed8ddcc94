"""Click logs: the generator writes what the checker takes, and each mistake has its own line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import DataError
from workbench.models.data import generated_file, text_table
from workbench.models.data.criteo import CARDINALITIES, CRITEO, check_criteo, generate_criteo

NUMBERS = ["3", "-1", "", "0", "12", "", "4", "1", "160", "0", "1", "", "7"]
CATEGORIES = ["05db9164", "", *["68fd1e64"] * 24]
FIELDS = ["0", *NUMBERS, *CATEGORIES]


def row(**changes: str) -> bytes:
    """A good row with some fields changed, by column name."""
    names = [column.name for column in CRITEO.columns]
    fields = list(FIELDS)
    for name, value in changes.items():
        fields[names.index(name)] = value
    return "\t".join(fields).encode()


@pytest.fixture
def log(tmp_path):
    """Writes bytes as a click log and gives its path."""

    def write(*lines: bytes, end: bytes = b"\n") -> Path:
        path = tmp_path / "clicks.tsv"
        path.write_bytes(end.join(lines) + end if lines else b"")
        return path

    return write


def refusal(path, rows=None) -> str:
    with pytest.raises(DataError) as caught:
        check_criteo(path, rows=rows)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(path))
    return message.removeprefix(str(path))


def test_good_rows_are_counted(log):
    checked = check_criteo(log(row(), row(label="1"), row(I2="")))
    assert (checked.rows, checked.more) == (3, False)


def test_the_last_row_needs_no_line_end(log):
    path = log(row(), row())
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert check_criteo(path).rows == 2


def test_windows_line_ends_are_taken(log):
    assert check_criteo(log(row(), row(C26=""), end=b"\r\n")).rows == 2


def test_numbers_may_be_negative_decimal_or_in_exponent_form(log):
    assert (
        check_criteo(log(row(I1="-3", I2="1.5", I3="2.", I4=".5", I5="1e3", label="1.0"))).rows == 1
    )


def test_only_the_rows_that_are_read_are_checked(log):
    path = log(row(), row(), b"nonsense")
    checked = check_criteo(path, rows=2)
    assert (checked.rows, checked.more) == (2, True)
    assert refusal(path, rows=3).startswith(", row 3: 1 column; expected 40")


def test_a_file_with_fewer_rows_than_asked_is_fine(log):
    checked = check_criteo(log(row(), row()), rows=10)
    assert (checked.rows, checked.more) == (2, False)


def test_a_missing_file_is_named(tmp_path):
    assert refusal(tmp_path / "no.tsv") == ": no such file; give the path of a click log"


def test_a_directory_is_refused(tmp_path):
    assert refusal(tmp_path) == ": is a directory; give the path of one file inside it"


def test_an_empty_file_is_refused(log):
    assert refusal(log()) == ": is empty; expected rows of label, I1..I13, C1..C26"


UNPACK = "; unpack it to plain text first"
TAR = bytes(257) + b"ustar\0" + bytes(249)
KINDS = [
    (b"PK\x03\x04", f"a zip archive{UNPACK}"),
    (b"7z\xbc\xaf\x27\x1c", f"a 7z archive{UNPACK}"),
    (TAR, f"a tar archive{UNPACK}"),
    (b"<!DOCTYPE html><html>", "a web page"),
    ("0\t1".encode("utf-16"), "text in UTF-16; save it as UTF-8"),
    (
        b"version https://git-lfs.github.com/spec/v1\n",
        "a pointer of Git LFS; fetch the file",
    ),
    (b"\x93NUMPY", "an array of NumPy"),
]


@pytest.mark.parametrize(("head", "kind"), [*KINDS, (b"\x04\x22\x4d\x18", "compressed by lz4;")])
def test_a_file_of_another_kind_is_named_as_such(log, head, kind):
    assert refusal(log(head)).startswith(f": is {kind}")


@pytest.mark.parametrize(("head", "kind"), [*KINDS, (b"PAR1", "a Parquet file")])
def test_what_a_compressed_file_holds_is_named_too(log, head, kind):
    path = log()
    path.write_bytes(gzip.compress(head))
    assert refusal(path).startswith(f": is compressed by gzip, and what it holds is {kind}")


def test_text_that_begins_as_zlib_might_is_text(log):
    assert "column label: 'x^' is no label" in refusal(log(row(label="x^")))
    path = log()
    path.write_bytes(zlib.compress(b"\n".join([row()] * 300)))
    assert (check_criteo(path).compression, check_criteo(path).rows) == ("zlib", 300)
    path.write_bytes(path.read_bytes()[:-5])
    assert refusal(path).startswith(": this damaged zlib file cannot be read on: ")


COMPRESS = {
    "gzip": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda text: pa.Codec("zstd").compress(text, asbytes=True),
}


@pytest.mark.parametrize("compression", COMPRESS)
def test_compressed_text_is_read_as_the_text_that_it_holds(log, compression):
    rows = [row(C1=f"{number:08x}") for number in range(300)]
    text = b"\r\n".join(rows)
    # In two parts, as tools that append leave a log.
    parts = [COMPRESS[compression](text[:5000]), COMPRESS[compression](text[5000:])]
    path = log()
    path.write_bytes(b"".join(parts))
    checked = check_criteo(path, rows=200)
    assert (checked.rows, checked.more, checked.compression) == (200, True, compression)
    assert b"".join(text_table.text_blocks(checked, 1 << 12)) == b"\n".join(rows[:200]) + b"\n"
    assert check_criteo(path).rows == 300


@pytest.mark.parametrize("compression", COMPRESS)
def test_damaged_compressed_text_is_said_to_be(log, compression):
    whole = COMPRESS[compression](b"\n".join([row()] * 50))
    path = log()
    path.write_bytes(whole[: len(whole) // 2])
    said = refusal(path)
    assert said.startswith(f": this damaged {compression} file cannot be read on: ")
    assert said.endswith("; copy it again")


def test_a_fault_in_compressed_text_names_its_row(log):
    path = log()
    path.write_bytes(gzip.compress(b"\n".join([row(), row(label="2")])))
    assert refusal(path).startswith(", row 2, column label: '2' is no label")


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == (
        ": is a pipe; a log is read several times, so write it to a file first"
    )


def test_a_device_is_refused():
    assert refusal("/dev/null") == ": is a device; give the path of a file"


def test_a_name_that_breaks_a_line_is_escaped(tmp_path):
    path = tmp_path / "two\nlines\x1b[31m.tsv"
    with pytest.raises(DataError) as caught:
        check_criteo(path)
    assert str(caught.value) == (
        f"{tmp_path}/two\\nlines\\x1b[31m.tsv: no such file; give the path of a click log"
    )


def test_a_missing_column_is_counted(log):
    short = b"\t".join(row().split(b"\t")[:-1])
    assert refusal(log(row(), short, row())) == (
        ", row 2: 39 columns; expected 40 (label, I1..I13, C1..C26) separated by tabs"
    )


def test_another_separator_is_one_column(log):
    assert ", row 1: 1 column; expected 40" in refusal(log(row().replace(b"\t", b",")))


def test_a_blank_row_is_one_column(log):
    assert ", row 2: 1 column; expected 40" in refusal(log(row(), b"", row()))


@pytest.mark.parametrize(
    "value", ["abc", "1,5", "0x10", "1-2", "--1", "nan", "inf", "1 ", "9" * 60, "-", "1e99", "٣"]
)
def test_what_is_no_number_names_row_and_column(log, value):
    assert refusal(log(row(), row(I7=value))) == (
        f", row 2, column I7: {text_table._shown(value)} is not a number; "
        "leave the field empty if it is unknown"
    )


@pytest.mark.parametrize("value", ["", "2", "-1", "yes", "0.5"])
def test_a_label_is_0_or_1(log, value):
    assert refusal(log(row(), row(label=value))) == (
        f", row 2, column label: {value!r} is no label; expected 0 or 1"
    )


def test_a_header_gets_a_hint(log):
    header = "\t".join(column.name for column in CRITEO.columns).encode()
    assert refusal(log(header, row())).endswith(
        "column label: 'label' is no label; expected 0 or 1; "
        "if row 1 holds the names of the columns, remove it"
    )


def test_a_nul_byte_is_refused(log):
    assert refusal(log(row(), row(C3="a\0b"))) == ", row 2: has a NUL byte; expected a text file"


def test_bytes_that_are_no_text_are_refused(log):
    path = log(row(), row(C3="?"))
    path.write_bytes(path.read_bytes().replace(b"?", b"\xff"))
    assert refusal(path) == ", row 2: byte 0xff is not UTF-8 text; save the file as UTF-8"


def test_utf8_categories_are_taken(log):
    assert check_criteo(log(row(C3="größe"))).rows == 1


def test_a_carriage_return_inside_a_row_is_refused(log):
    assert refusal(log(row(), row(C3="a\rb"))) == (
        ", row 2: has a carriage return inside; expected line ends"
    )


def test_old_mac_line_ends_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(text_table, "_LONGEST_ROW_BYTES", 1000)
    path = tmp_path / "mac.tsv"
    path.write_bytes((row() + b"\r") * 20)
    assert refusal(path) == (
        ", row 1: is over 1000 bytes long, no row; its lines end with CR alone: convert them"
    )


def test_rows_below_one_are_refused(log):
    assert refusal(log(row()), rows=0) == ": asked to read 0 rows; expected at least 1"


def test_the_earliest_mistake_is_reported(log):
    assert ", row 2, column I1" in refusal(log(row(), row(I1="x"), b"short"))


@pytest.mark.parametrize("block", [1, 7, 300, 1000])
def test_blocks_may_end_anywhere(log, monkeypatch, block):
    monkeypatch.setattr(text_table, "_BLOCK_BYTES", block)
    path = log(*[row()] * 9, row(I13="oops"))
    assert check_criteo(path, rows=9).rows == 9
    assert ", row 10, column I13: 'oops'" in refusal(path)


@given(
    field=st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\0"), max_size=12
    )
)
def test_numbers_are_taken_exactly_when_the_pattern_and_python_agree(tmp_path_factory, field):
    path = tmp_path_factory.mktemp("log") / "clicks.tsv"
    path.write_bytes(row(I4=field) + b"\n")
    good = field == "" or re.fullmatch(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", field)
    if good and (not field or abs(float(field)) < 3.4e38):
        assert check_criteo(path).rows == 1
    else:
        assert ", row 1, column I4" in refusal(path)


def test_the_generator_writes_what_the_checker_takes(tmp_path):
    path = generate_criteo(tmp_path / "clicks.tsv", rows=12_345, seed=3)
    assert check_criteo(path).rows == 12_345


def test_the_generated_log_has_the_shape_of_the_real_one(tmp_path):
    path = generate_criteo(tmp_path / "clicks.tsv", rows=10_000)
    table = [line.split("\t") for line in path.read_text().splitlines()]
    columns = dict(zip((c.name for c in CRITEO.columns), zip(*table, strict=True), strict=True))
    assert 0.2 < np.mean([value == "1" for value in columns["label"]]) < 0.3
    assert 0.7 < np.mean([value == "" for value in columns["C22"]]) < 0.85
    assert not any(value == "" for value in columns["C1"])
    assert any(value.startswith("-") for value in columns["I2"])
    for name, cardinality in zip(list(columns)[14:], CARDINALITIES, strict=True):
        values = {value for value in columns[name] if value}
        assert len(values) <= cardinality
        assert all(re.fullmatch("[0-9a-f]{8}", value) for value in values)
    counts = np.unique(columns["C1"], return_counts=True)[1]
    assert counts.max() > 10 * np.median(counts)


def test_the_label_can_be_learned(tmp_path):
    path = generate_criteo(tmp_path / "clicks.tsv", rows=20_000)
    table = [line.split("\t") for line in path.read_text().splitlines()]
    label = np.array([fields[0] == "1" for fields in table])
    value = np.array([fields[14 + 16] for fields in table])
    rates = [label[value == v].mean() for v in np.unique(value) if (value == v).sum() > 500]
    assert max(rates) - min(rates) > 0.2


def test_the_same_recipe_makes_the_same_file_and_keeps_it(tmp_path):
    one = generate_criteo(tmp_path / "one.tsv", rows=500, seed=7)
    two = generate_criteo(tmp_path / "two.tsv", rows=500, seed=7)
    assert one.read_bytes() == two.read_bytes()
    before = one.stat().st_mtime_ns
    generate_criteo(one, rows=500, seed=7)
    assert one.stat().st_mtime_ns == before


def test_a_longer_log_begins_like_a_shorter_one(tmp_path):
    short = generate_criteo(tmp_path / "short.tsv", rows=300).read_bytes()
    assert generate_criteo(tmp_path / "long.tsv", rows=10_300).read_bytes().startswith(short)


def test_another_recipe_replaces_the_file(tmp_path):
    path = generate_criteo(tmp_path / "clicks.tsv", rows=100, seed=1)
    before = path.read_bytes()
    assert generate_criteo(path, rows=100, seed=2).read_bytes() != before


def test_a_generated_file_cut_short_is_made_again(tmp_path):
    path = generate_criteo(tmp_path / "clicks.tsv", rows=100)
    whole = path.read_bytes()
    path.write_bytes(whole[:50])
    assert generate_criteo(path, rows=100).read_bytes() == whole


def test_a_users_own_file_is_never_overwritten(tmp_path):
    path = tmp_path / "clicks.tsv"
    path.write_text("mine")
    with pytest.raises(DataError, match="was not generated here, so it is not overwritten"):
        generate_criteo(path, rows=10)
    assert path.read_text() == "mine"


def test_an_interrupted_generator_leaves_nothing(tmp_path):
    def chunks():
        yield b"some"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generated_file.write_generated(tmp_path / "clicks.tsv", chunks(), {"rows": 1})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("rows", "seed"), [(0, 1), (10, -1)])
def test_impossible_recipes_are_refused(tmp_path, rows, seed):
    with pytest.raises(DataError, match="expected"):
        generate_criteo(tmp_path / "clicks.tsv", rows=rows, seed=seed)

"""TFRecord and Parquet in a graph give the batches that the same rows give as text."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import lzma
import os
import re
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.containers import SMALL, write_parquet, write_tfrecord
from tests.builders.grids import every_value, rest_slow
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.core.session.prefetch_hook import make_prefetch_hook
from workbench.errors import DataError
from workbench.models.building.graph_input import next_lines, stage
from workbench.models.data import parquet, tfrecord
from workbench.models.data.containers import check_file, line_blocks
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.data.dataset import parse_lines, parse_rows
from workbench.models.data.table_format import CheckedTable
from workbench.models.data.taobao import (
    check_dssm,
    check_sequences,
    generate_dssm,
    generate_sequences,
)
from workbench.models.data.text_table import check_table

v1 = tf.compat.v1
OFF = Optimizations()
STAGED = Optimizations(stage=StageOptions())
ROWS = 700

FORMATS = {
    "criteo": (generate_criteo, check_criteo),
    "dssm": (generate_dssm, check_dssm),
    "sequences": (generate_sequences, check_sequences),
}


# Each kind of column of the second stands in the other two; numbers are in `TestTfrecord` too.
@pytest.fixture(scope="module", params=rest_slow(list(FORMATS), "sequences"))
def tables(request, tmp_path_factory) -> dict[str, CheckedTable]:
    """The same rows in each container."""
    generate, check = FORMATS[request.param]
    home = tmp_path_factory.mktemp(request.param)
    text = check(generate(home / "log.txt", rows=ROWS))
    return {
        "text": text,
        "tfrecord": write_tfrecord(text, home / "log.tfrecord"),
        "parquet": write_parquet(text, home / "log.parquet"),
    }


def batches(data: CheckedTable, optimizations=OFF, *, steps=None) -> list[dict[str, np.ndarray]]:
    """The batches of an epoch, or of a number of steps through rows without end."""
    with tf.Graph().as_default():
        rows = next_lines(data, batch_size=128, endless=steps is not None)
        batch = stage(parse_rows(rows, data), optimizations)
        found = []
        v1.train.get_or_create_global_step()
        with v1.train.MonitoredTrainingSession(hooks=[make_prefetch_hook()]) as session:
            while not session.should_stop() and len(found) != steps:
                found.append(session.run(batch))
    return found


def require_equal(left, right) -> None:
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert one[name].dtype == other[name].dtype
            assert one[name].tolist() == other[name].tolist(), name


@pytest.mark.parametrize("container", ["tfrecord", "parquet"])
def test_an_epoch_has_the_batches_of_text(tables, container):
    text = batches(tables["text"])
    assert [len(next(iter(batch.values()))) for batch in text] == [128] * 5 + [60]
    require_equal(batches(tables[container]), text)


@pytest.mark.parametrize("container", ["tfrecord", "parquet"])
def test_rows_without_end_begin_again(tables, container, monkeypatch):
    monkeypatch.setattr(parquet, "_READ_ROWS", 100)
    require_equal(batches(tables[container], steps=12), batches(tables["text"], steps=12))


@pytest.mark.parametrize("container", ["tfrecord", "parquet"])
def test_a_stage_delivers_the_same_batches(tables, container):
    require_equal(batches(tables[container], STAGED), batches(tables["text"]))


def test_what_is_written_is_checked_as_it_was(tables):
    for container, table in tables.items():
        checked = check_file(table.path, table.layout)
        assert checked == table
        assert (checked.container, checked.rows, checked.more) == (container, ROWS, False)


def test_only_the_chosen_rows_are_read(tables):
    for table in tables.values():
        few = check_file(table.path, table.layout, rows=130)
        assert (few.rows, few.more) == (130, True)
        require_equal(batches(few), batches(check_file(tables["text"].path, few.layout, rows=130)))
        assert not check_file(table.path, table.layout, rows=ROWS).more
        assert check_file(table.path, table.layout, rows=ROWS + 1).rows == ROWS


def test_each_container_is_written_from_each(tables, tmp_path):
    text = tables["text"].path.read_bytes()
    for container, table in tables.items():
        for write in (write_tfrecord, write_parquet):
            written = write(table, tmp_path / f"{container}-{write.__name__}")
            assert b"".join(line_blocks(written)) == text


def test_several_sessions_read_the_same_parquet_dataset(tables):
    data = tables["parquet"]
    rows = next_lines(data, batch_size=64, endless=False)
    for _ in range(2):
        with v1.train.SingularMonitoredSession() as session:
            assert session.run(rows)[0] == data_line(data)


def data_line(data: CheckedTable) -> bytes:
    return next(iter(line_blocks(data))).partition(b"\n")[0]


def test_batches_held_in_memory_repeat(tables):
    rows = next_lines(tables["parquet"], batch_size=350, held=True)
    with v1.train.SingularMonitoredSession() as session:
        found = [session.run(rows).tolist() for _ in range(4)]
    assert found[0] == found[2] != found[1] == found[3]


def test_the_parse_of_text_knows_every_kind():
    lines = tf.constant(["1\t-2.5\ta\tx|y", '0\t\t"b\t'])
    with v1.Session() as session:
        found = session.run(parse_lines(lines, SMALL))
    assert found["label"].tolist() == [1.0, 0.0] and found["N"].tolist() == [-2.5, 0.0]
    assert found["C"].tolist() == [b"a", b'"b'] and found["L"].tolist() == [b"x|y", b""]


class TestTfrecord:
    """Files of examples that others have written."""

    @staticmethod
    def example(**features) -> bytes:
        """A good example, some features of it changed, or left off where they are None."""
        found = {"label": 1.0, "N": 2.5, "C": b"a", "L": [b"x", b"y"], **features}
        made = {}
        for name, value in found.items():
            values = value if isinstance(value, list) else [value]
            if value is None:
                continue
            if values and all(isinstance(one, bytes) for one in values):
                made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
            elif all(isinstance(one, int) for one in values):
                made[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
            else:
                made[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()

    @pytest.fixture
    def log(self, tmp_path):
        def write(*examples: bytes) -> Path:
            path = tmp_path / "clicks.tfrecord"
            with tf.io.TFRecordWriter(str(path)) as out:
                for example in examples:
                    out.write(example)
            return path

        return write

    @staticmethod
    def refusal(path: Path, rows=None) -> str:
        with pytest.raises(DataError) as caught:
            check_file(path, SMALL, rows=rows)
        message = str(caught.value)
        assert "\n" not in message and message.startswith(str(path))
        return message.removeprefix(str(path))

    def test_absent_features_are_empty_fields(self, log):
        table = check_file(log(self.example(N=None, C=None, L=None, more=3)), SMALL)
        assert b"".join(line_blocks(table)) == b"1\t\t\t\n"
        (batch,) = batches(table)
        assert {name: values.tolist() for name, values in batch.items()} == {
            "label": [1.0], "N": [0.0], "C": [b""], "L": [b""],
        }  # fmt: skip

    @settings(deadline=None, max_examples=10)
    @given(
        numbers=st.lists(
            st.floats(-(2.0**120), 2.0**120, width=32, allow_subnormal=False), min_size=1
        )
    )
    def test_numbers_come_back_bit_for_bit(self, tmp_path_factory, numbers):
        home = tmp_path_factory.mktemp("log")
        (home / "log.tsv").write_text("".join(f"1\t{number!r}\t\t\n" for number in numbers))
        written = write_tfrecord(check_table(home / "log.tsv", SMALL), home / "log.tfrecord")
        found = [line.split(b"\t")[1] for line in b"".join(line_blocks(written)).splitlines()]
        assert [np.float32(one) for one in found] == [np.float32(one) for one in numbers]
        assert np.concatenate([b["N"] for b in batches(written)]).tolist() == [
            np.float32(one) for one in numbers
        ]

    @every_value(
        at_once=[1, 2, 1000],
        mistake=[
            ({"label": 2.0}, "row 3, column label: '2' is no label; expected 0 or 1"),
            ({"N": float("nan")}, "row 3, column N: 'nan' is not a number; leave the field empty"),
            ({"C": b"b\tc"}, "row 3, column C: 'b\\tc' holds a separator; expected none of"),
            ({"C": b"b\n"}, "row 3, column C: 'b\\n' holds a separator; expected none of"),
            ({"C": b"\xff"}, "row 3: byte 0xff is not UTF-8 text"),
            ({"L": [b"a", b""]}, "row 3, column L: value 2 of 2 is empty"),
            ({"L": [b"a"] * 4}, "row 3, column L: 4 values; expected at most 3"),
            ({"label": None}, "row 3: is no such example: "),
            ({"label": 1}, "row 3: is no such example: Name: <unknown>, Key: label, Index: "),
            ({"N": [1.0, 2.0]}, "row 3: is no such example: "),
            ({"C": [b"a", b"b"]}, "row 3: is no such example: "),
            ({"C": 3.5}, "row 3: is no such example: "),
        ],
    )
    def test_a_mistake_names_its_row(self, log, monkeypatch, at_once, mistake):
        features, said = mistake
        monkeypatch.setattr(tfrecord, "_CHECKED_ROWS", at_once)
        good = self.example()
        found = self.refusal(log(good, good, self.example(**features), good))
        assert found.startswith(f", {said}")

    @pytest.mark.parametrize(
        ("features", "cause"),
        [
            ({"label": None}, "Feature: label (data type: float) is required but could not be"),
            (
                {"label": b"1"},
                "Key: label, Index: 0.  Data types don't match. Data type: string but",
            ),
            ({"N": [1.0, 2.0]}, "Key: N, Index: 0.  Number of float values != expected"),
            ({"C": 3.5}, "Key: C, Index: 0.  Data types don't match. Data type: float but"),
        ],
    )
    def test_a_mistake_says_which_feature_and_what_was_expected(self, log, features, cause):
        found = self.refusal(log(self.example(**features)))
        assert found.startswith(f", row 1: is no such example: Name: <unknown>, {cause}")
        assert found.endswith(
            "; expected floats or integers for labels and numbers, bytes or integers for all "
            "else, and one type in all rows"
        )

    def test_integers_are_read_as_their_text(self, log, tmp_path):
        rows = [
            (1, -7, 3, [4, 5]),
            (0, None, 2**40, []),
            (1, 16_777_217, None, None),
            (0, 0, 0, [0]),
        ]
        path = log(*(self.example(label=label, N=n, C=c, L=values) for label, n, c, values in rows))
        text = tmp_path / "log.tsv"
        text.write_text("1\t-7\t3\t4|5\n0\t\t1099511627776\t\n1\t16777217\t\t\n0\t0\t0\t0\n")
        table = check_file(path, SMALL)
        assert table.integers == {"label", "N", "C", "L"}
        assert b"".join(line_blocks(table)) == text.read_bytes()
        require_equal(batches(table), batches(check_table(text, SMALL)))

    @pytest.mark.parametrize("at_once", [1, 2, 1000])
    def test_the_type_of_a_feature_is_that_of_the_first_row_that_has_it(
        self, log, monkeypatch, at_once
    ):
        monkeypatch.setattr(tfrecord, "_CHECKED_ROWS", at_once)
        bare, whole = self.example(N=None, C=None, L=None), self.example(N=3, C=4, L=[5, 6])
        table = check_file(log(bare, bare, whole, bare, whole), SMALL)
        assert table.integers == {"N", "C", "L"}
        assert (
            b"".join(line_blocks(table))
            == b"1\t\t\t\n1\t\t\t\n1\t3\t4\t5|6\n1\t\t\t\n1\t3\t4\t5|6\n"
        )

    @every_value(at_once=[1, 2, 1000], name=["label", "N", "C", "L"])
    def test_a_feature_of_two_types_is_refused_where_it_changes(
        self, log, monkeypatch, at_once, name
    ):
        monkeypatch.setattr(tfrecord, "_CHECKED_ROWS", at_once)
        good = self.example()
        found = self.refusal(log(good, good, self.example(**{name: 1}), good))
        assert found.startswith(f", row 3: is no such example: Name: <unknown>, Key: {name}, Index")
        assert re.search("type: int64.* expected type: |Expected type: .* type: int64", found)

    def test_a_category_of_several_integers_is_refused(self, log):
        found = self.refusal(log(self.example(C=1), self.example(C=[1, 2])))
        assert found.startswith(", row 2: is no such example: Name: <unknown>, Key: C, Index: 0.")

    def test_what_is_no_example_is_refused(self, log):
        assert ", row 2: is no such example: " in self.refusal(log(self.example(), b"nonsense"))

    def test_only_the_rows_that_are_read_are_checked(self, log):
        path = log(self.example(), self.example(), b"nonsense")
        assert check_file(path, SMALL, rows=2).more
        whole = path.read_bytes()
        path.write_bytes(whole[:-3])
        assert check_file(path, SMALL, rows=2).more

    @pytest.mark.parametrize("at_once", [1, 2, 1000])
    def test_damage_says_behind_which_row(self, log, monkeypatch, at_once):
        monkeypatch.setattr(tfrecord, "_CHECKED_ROWS", at_once)
        path = log(*[self.example()] * 5)
        whole = bytearray(path.read_bytes())
        whole[-(len(whole) // 5) + 14] ^= 1
        path.write_bytes(whole)
        found = self.refusal(path)
        assert found.startswith(", behind row 4: is damaged: ")
        assert found.endswith("; write the file again")

    def test_rows_below_one_are_refused(self, log):
        assert self.refusal(log(self.example()), rows=0) == (
            ": asked to read 0 rows; expected at least 1"
        )

    def test_an_empty_file_is_refused(self, tmp_path):
        path = tmp_path / "none.tfrecord"
        path.touch()
        with pytest.raises(DataError, match="is empty; expected examples of label, N, C, L"):
            tfrecord.check_tfrecord(path, SMALL)


@pytest.mark.parametrize("optimizations", rest_slow([OFF, STAGED], STAGED))
def test_compressed_text_gives_the_batches_of_its_text(tables, tmp_path, optimizations):
    plain = tables["text"]
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(plain.path.read_bytes()))
    checked = check_table(packed, plain.layout)
    require_equal(batches(checked, optimizations), batches(plain, optimizations))
    require_equal(batches(checked, optimizations, steps=9), batches(plain, optimizations, steps=9))
    written = write_parquet(checked, tmp_path / "log.parquet")
    require_equal(batches(written), batches(plain))


@pytest.mark.parametrize("container", ["text", "tfrecord", "parquet"])
def test_a_file_name_may_be_no_text(tables, tmp_path, container):
    name = os.fsdecode(b"caf\xe9.log")
    path = tmp_path / name
    path.write_bytes(tables[container].path.read_bytes())
    found = dataclasses.replace(tables[container], path=path)
    require_equal(batches(found, steps=2), batches(tables[container], steps=2))


def zstd(data: bytes) -> bytes:
    return pa.compress(data, "zstd", asbytes=True)


PACKED = {
    "gzip": gzip.compress,
    "zlib": zlib.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}


@pytest.mark.parametrize("compression", rest_slow(list(PACKED), "gzip"))
def test_compressed_records_give_the_batches_of_their_text(tables, tmp_path, compression):
    plain = tables["tfrecord"]
    packed = tmp_path / "log"
    packed.write_bytes(PACKED[compression](plain.path.read_bytes()))
    checked = check_file(packed, plain.layout)
    assert checked == dataclasses.replace(plain, path=packed, compression=compression)
    require_equal(batches(checked, steps=9), batches(tables["text"], steps=9))
    assert b"".join(line_blocks(checked)) == tables["text"].path.read_bytes()
    few = check_file(packed, plain.layout, rows=130)
    assert (few.rows, few.more) == (130, True)
    require_equal(batches(few), batches(check_file(tables["text"].path, plain.layout, rows=130)))
    assert not check_file(packed, plain.layout, rows=ROWS).more


@pytest.mark.parametrize("compression", rest_slow(["gzip", "zlib", "bz2", "xz"], "gzip", "zlib"))
def test_compressed_records_that_are_cut_off_are_refused(tables, tmp_path, compression):
    """TensorFlow gives the first records of a gzip file that is cut off as if they were all."""
    plain, packed = tables["tfrecord"], tmp_path / "log"
    whole = PACKED[compression](plain.path.read_bytes())
    packed.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=f"log: this damaged {compression} file cannot be read on"):
        check_file(packed, plain.layout)
    packed.write_bytes(whole[:-6])
    with pytest.raises(DataError, match=f"log: this damaged {compression} file cannot be read on"):
        check_file(packed, plain.layout)


def test_damaged_records_in_a_whole_archive_are_refused(tables, tmp_path):
    plain, packed = tables["tfrecord"], tmp_path / "log.gz"
    whole = plain.path.read_bytes()
    length = int.from_bytes(whole[:8], "little") + 16
    for damaged, what in (
        (whole[: length + 20], "behind row 1: is damaged: it ends inside a record; write the"),
        (whole[:length] + b"junk" * 9, "behind row 1: is damaged: what follows is no record"),
        (whole[:length] + whole[length + 3 :], "behind row 1: is damaged: what follows is no r"),
    ):
        packed.write_bytes(gzip.compress(damaged))
        with pytest.raises(DataError, match=what):
            check_file(packed, plain.layout)


def test_two_archives_joined_are_one_file(tables, tmp_path):
    plain, packed = tables["tfrecord"], tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(plain.path.read_bytes()) * 2)
    assert check_file(packed, plain.layout).rows == 2 * ROWS

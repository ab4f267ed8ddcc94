"""What cannot be written is one error that names it, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from tests.builders.comparisons import comparison
from tests.builders.traces import staged_trace
from workbench.errors import OutputError
from workbench.files.atomic_file import (
    make_directory,
    replacing,
    require_writable_directory,
    require_writable_file,
)
from workbench.models.data.criteo import generate_criteo
from workbench.viz.report import write_report


@pytest.fixture
def full_disk(monkeypatch):
    """Every write to a new file fails as on a full disk: files stand for /dev/full."""
    opened = Path.open

    def on_full_disk(path, mode="r", *arguments, **options):
        if "w" in mode:
            return open("/dev/full", mode, *arguments, **options)
        return opened(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", on_full_disk)


def said(action) -> str:
    with pytest.raises(OutputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_place_is_left_as_it_was(tmp_path):
    require_writable_directory(tmp_path / "new" / "deeper")
    require_writable_file(tmp_path / "new" / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    wanted = tmp_path / "file" / "results"
    expected = f"{wanted}: cannot be written: {tmp_path / 'file'} is not a directory"
    assert said(lambda: require_writable_directory(wanted)) == expected
    assert said(lambda: make_directory(wanted)) == f"{wanted}: cannot be written: Not a directory"


def test_a_dangling_link_is_in_the_way(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert "is not a directory" in said(lambda: require_writable_directory(tmp_path / "link"))


def test_a_directory_in_the_place_of_a_file_is_named(tmp_path):
    assert said(lambda: require_writable_file(tmp_path)) == (
        f"{tmp_path}: cannot be written: it is a directory"
    )


def test_a_place_that_refuses_files_is_named():
    # No process may make files there, whoever runs it.
    assert said(lambda: require_writable_directory("/proc/self/new")).startswith(
        "/proc/self/new: cannot be written: "
    )


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_found_before_anything_runs(tmp_path):
    expected = f"{tmp_path}/out: cannot be written: {os.strerror(errno.ENOSPC)}"
    assert said(lambda: require_writable_directory(f"{tmp_path}/out")) == expected
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("full_disk")
def test_a_disk_that_fills_while_data_is_generated(tmp_path):
    path = tmp_path / "clicks.tsv"
    assert said(lambda: generate_criteo(path, rows=500)) == (
        f"{path}: cannot be written: {os.strerror(errno.ENOSPC)}"
    )
    assert list(tmp_path.iterdir()) == []


def _no_space(*arguments, **options):
    # As Arrow says it.
    raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: no space left")


def test_results_that_find_no_room_name_their_place(tmp_path, monkeypatch):
    trace, found = staged_trace(), comparison()
    monkeypatch.setattr(pa.parquet.ParquetWriter, "write_table", _no_space)
    monkeypatch.setattr(Path, "write_bytes", _no_space)
    monkeypatch.setattr(Path, "write_text", _no_space)
    for path, save in (
        (tmp_path / "t.parquet", trace.save),
        (tmp_path / "report.html", lambda path: write_report(found, path)),
        (tmp_path / "saved", found.save),
    ):
        assert said(lambda save=save, path=path: save(path)) == (
            f"{path}: cannot be written: No space left on device"
        )
    assert [p.name for p in tmp_path.rglob("*")] == ["saved"]


def test_what_was_there_is_kept(tmp_path):
    path = tmp_path / "kept"
    path.write_text("old")
    with pytest.raises(OutputError), replacing(path) as part:
        part.write_text("new")
        raise OSError(errno.EIO, "x")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["kept"]

"""An output goes where its path leads: through links, into devices and pipes."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.builders.comparisons import comparison
from tests.builders.traces import staged_trace
from workbench.cli.main import main
from workbench.errors import OutputError
from workbench.files.atomic_file import (
    home_of,
    is_stdout,
    make_directory,
    put_in_place,
    replacing,
    require_writable_directory,
    require_writable_file,
)
from workbench.models.data.criteo import generate_criteo
from workbench.viz.report import write_report


def write(path, text="new") -> None:
    require_writable_file(path)
    with replacing(path) as part:
        part.write_text(text)


def said(action) -> str:
    with pytest.raises(OutputError) as caught:
        action()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def null(tmp_path) -> Path:
    """A device like /dev/null."""
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        path.open("wb").close()
    except PermissionError:
        pytest.skip("this user may not make a device")
    return path


def test_a_device_stays_a_device(null):
    write(null)
    staged_trace().to_chrome(null)
    staged_trace().save(null)
    write_report(comparison(), null)
    assert stat.S_ISCHR(null.lstat().st_mode)
    assert [p.name for p in null.parent.iterdir()] == ["null"]


def test_a_full_device_is_an_error():
    assert said(lambda: write("/dev/full")) == (
        "/dev/full: cannot be written: No space left on device"
    )


def test_a_pipe_takes_the_bytes(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(path.read_text()))
    reader.start()
    write(path)
    reader.join()
    assert found == ["new"] and stat.S_ISFIFO(path.lstat().st_mode)


def test_a_pipe_whose_reader_has_gone_is_an_error():
    end, start = os.pipe()
    os.close(end)
    try:
        assert said(lambda: write(f"/dev/fd/{start}")).endswith("cannot be written: Broken pipe")
    finally:
        os.close(start)


def test_a_descriptor_is_written_where_it_stands(tmp_path):
    """As a shell's redirection does: what the file has is kept."""
    log = tmp_path / "log"
    with log.open("w") as file:
        file.write("before\n")
        file.flush()
        write(f"/dev/fd/{file.fileno()}", "new\n")
        write(f"/proc/self/fd/{file.fileno()}", "newer\n")
        file.write("after\n")
    assert log.read_text() == "before\nnew\nnewer\nafter\n"


def test_a_closed_descriptor_is_an_error():
    end, start = os.pipe()
    os.close(end)
    os.close(start)
    assert said(lambda: write(f"/dev/fd/{start}")).endswith("Bad file descriptor")


def test_standard_output_is_the_stream_itself(tmp_path):
    code = (
        "import sys; from workbench.files.atomic_file import is_stdout, replacing\n"
        "print('before')\n"
        "with replacing(sys.argv[1]) as part: part.write_text('new\\n')\n"
        "print('after', is_stdout(sys.argv[1]))"
    )
    (tmp_path / "link").symlink_to("/dev/stdout")
    for name in ("/dev/stdout", tmp_path / "link"):
        with (tmp_path / "out").open("w") as out:
            subprocess.run([sys.executable, "-c", code, str(name)], stdout=out, check=True)
        assert (tmp_path / "out").read_text() == "before\nnew\nafter True\n"
    assert not is_stdout("/dev/stderr") and not is_stdout(tmp_path / "out")


def test_a_link_leads_to_its_file(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    (tmp_path / "second").symlink_to("link")
    write(tmp_path / "second")
    assert (tmp_path / "second").is_symlink() and (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "new"
    assert [p.name for p in (tmp_path / "there").iterdir()] == ["file"]


def test_a_link_to_no_file_yet_makes_it(tmp_path):
    (tmp_path / "link").symlink_to("file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_text() == "new"


def test_a_second_name_of_a_file_has_the_new_content(tmp_path):
    (tmp_path / "one").write_text("old, and longer")
    os.link(tmp_path / "one", tmp_path / "two")
    write(tmp_path / "one")
    assert (tmp_path / "two").read_text() == "new"


@pytest.mark.parametrize("mode", [0o640, 0o600, 0o664, 0o755])
def test_a_file_keeps_its_mode_and_its_inode_is_new(tmp_path, mode):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(mode)
    before = path.stat()
    with path.open() as held:
        write(path)
        assert held.read() == "old"
    after = path.stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid) == (mode, before.st_uid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_file_keeps_its_owner(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    write(path)
    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 2345, 0o640)


def test_files_of_a_saved_comparison_keep_theirs_too(tmp_path):
    found = comparison()
    found.save(tmp_path / "saved")
    (tmp_path / "kept.json").write_text("")
    (tmp_path / "kept.json").chmod(0o640)
    (tmp_path / "saved" / "comparison.json").unlink()
    (tmp_path / "saved" / "comparison.json").symlink_to("../kept.json")
    found.save(tmp_path / "saved")
    assert (tmp_path / "saved" / "comparison.json").is_symlink()
    assert (tmp_path / "kept.json").stat().st_size
    assert stat.S_IMODE((tmp_path / "kept.json").stat().st_mode) == 0o640


def test_a_failure_meanwhile_leaves_devices_and_summaries_alone(null, tmp_path, monkeypatch):
    summary = tmp_path / "summary"
    summary.write_text("kept\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    for path in (null, summary):
        with pytest.raises(KeyError), replacing(path) as part:
            part.write_text("half")
            raise KeyError
    assert summary.read_text() == "kept\n"


def test_the_summary_of_a_step_gets_more(tmp_path, monkeypatch):
    summary = tmp_path / "summary"
    (tmp_path / "link").symlink_to("summary")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    write(summary, "one\n")
    write(summary, "two")
    write(tmp_path / "link", "three\n")
    assert summary.read_text() == "one\ntwo\nthree\n"
    write(tmp_path / "other", "one")
    write(tmp_path / "other", "two")
    assert (tmp_path / "other").read_text() == "two"


def test_a_gate_adds_to_the_summary_of_a_step(tmp_path, monkeypatch):
    summary = tmp_path / "summary"
    summary.write_text("# Tests\n\nAll passed")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    comparison().save(tmp_path / "saved")
    chosen = ["gate", str(tmp_path / "saved"), "--fail-if-slower", "90%"]
    for _ in range(2):
        main([*chosen, "--markdown", str(summary)])
    text = summary.read_text()
    assert text.startswith("# Tests\n\nAll passed\n### ") and text.count("\n### ") == 2


def test_a_gate_on_standard_output_prints_nothing_else_there(tmp_path):
    comparison().save(tmp_path / "saved")
    gate = [sys.executable, "-m", "workbench", "gate", str(tmp_path / "saved")]
    gate += ["--fail-if-slower", "90%", "--markdown"]
    both = [
        subprocess.run([*gate, name], capture_output=True, text=True, check=True)
        for name in ("-", "/dev/stdout")
    ]
    assert both[0].stdout == both[1].stdout and both[0].stdout.startswith("### ")


def test_what_is_written_beside_a_device_goes_to_the_working_directory(null, tmp_path):
    assert home_of(null) == Path() == home_of("/dev/stdout")
    assert home_of(tmp_path / "file") == tmp_path


UNFIT = {
    "": "'': cannot be written: its path is empty",
    "a\0b": "a\\x00b: cannot be written: its path has a NUL character",
    "\ud800": "\\ud800: cannot be written: its path has characters that no file name can have",
    "n" * 300: f"{'n' * 300}: cannot be written: File name too long",
}


@pytest.mark.parametrize("name", UNFIT, ids=["empty", "NUL", "surrogate", "long"])
def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    for action in (
        require_writable_file,
        write,
        make_directory,
        require_writable_directory,
        staged_trace().save,
        staged_trace().to_chrome,
        comparison().save,
        lambda path: write_report(comparison(), path),
    ):
        assert said(lambda action=action: action(name)) == UNFIT[name]
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_below_directories_to_come_is_known_early(tmp_path):
    path = tmp_path / "new" / ("n" * 300) / "file"
    assert said(lambda: require_writable_file(path)).endswith(
        "cannot be written: File name too long"
    )


def test_the_longest_name_that_a_file_can_have_is_written(tmp_path):
    write(tmp_path / ("n" * 255))
    generate_criteo(tmp_path / ("n" * 240), rows=5)
    name = tmp_path / ("m" * 300)
    assert said(lambda: generate_criteo(name, rows=5)) == (
        f"{name}: cannot be written: File name too long"
    )


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "symbolic links" in said(lambda: write(tmp_path / "a"))


def test_a_directory_and_a_socket_are_refused(tmp_path):
    import socket

    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(tmp_path / "s"))
        assert said(lambda: write(tmp_path / "s")).endswith("it is a socket")
    (tmp_path / "d").symlink_to(".")
    with pytest.raises(OutputError, match="it is a directory"), replacing(tmp_path / "d"):
        pass


def test_a_place_that_takes_no_files_is_one_sentence():
    for name in ("/proc/self/new", "/proc/new", "/sys/new"):
        with pytest.raises(OutputError) as caught, replacing(name) as part:
            part.write_text("new")
        assert str(caught.value).startswith(f"{name}: cannot be written: ")


def test_a_finished_file_that_has_no_place_says_which(tmp_path):
    (tmp_path / "part").write_text("new")
    (tmp_path / "there").mkdir()
    assert said(lambda: put_in_place(tmp_path / "part", tmp_path / "there")) == (
        f"{tmp_path / 'there'}: cannot be written: it is a directory"
    )

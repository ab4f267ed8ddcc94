"""import_trace: how a file's kind is found, and that damage is a TraceError and nothing else."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import subprocess
import sys
import threading

import pytest
from google.protobuf import text_format
from hypothesis import example, given
from hypothesis import strategies as st
from tensorflow.core.protobuf.config_pb2 import RunMetadata
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

from tests.builders.profiles import add_environment, add_plane, run_metadata, step_stats
from tests.builders.traces import staged_trace, unstaged_trace
from workbench.core.importing.import_trace import import_trace
from workbench.errors import TraceError

START = 1_795_399_526_450_000_000
OPS = [("w", "VarHandleOp", START, 2_000), ("y", "MatMul", START + 3_000, 5_000)]
SLICES = [
    {"ph": "X", "name": "a", "ts": 1, "dur": 2.5, "pid": 1, "tid": 1, "args": {"op": "A"}},
    {"ph": "B", "name": "b", "ts": 1, "pid": 1, "tid": 2},
    {"ph": "E", "name": "b", "ts": 9, "pid": 1, "tid": 2},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
]


def profile() -> XSpace:
    made = XSpace()
    add_plane(made, "/host:CPU", {"python": [("a:A", 0, 5_000, {}), ("t", 0, 9_000, {"n": "x"})]})
    add_environment(made, START)
    return made


def own_json(folder, trace) -> bytes:
    trace.to_chrome(folder / "own.json")
    return (folder / "own.json").read_bytes()


BINARY = {
    "RunMetadata": run_metadata(OPS).SerializeToString(),
    "StepStats": step_stats(OPS).SerializeToString(),
    "XSpace": profile().SerializeToString(),
}
TEXT = {
    "RunMetadata": text_format.MessageToString(run_metadata(OPS)).encode(),
    "StepStats": b"# of one step\n" + text_format.MessageToString(step_stats(OPS)).encode(),
    "XSpace": text_format.MessageToString(profile()).encode(),
}
FILES = {
    **{f"binary {name}": data for name, data in BINARY.items()},
    **{f"text {name}": data for name, data in TEXT.items()},
    "JSON": json.dumps({"traceEvents": SLICES}).encode(),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FILES)
def test_the_kind_of_a_file_is_found_in_it(tmp_path, name, packed):
    data = gzip.compress(FILES[name]) if packed else FILES[name]
    (tmp_path / "x").write_bytes(data)
    trace = import_trace(tmp_path / "x")
    trace.self_check()
    assert len(trace.events) == 2
    source = "tf.profiler" if "XSpace" in name else "Chrome JSON"
    assert trace.meta.source == ("step_stats" if "St" in name or "Run" in name else source)
    assert trace.meta.title == "x"


def test_a_path_may_be_text_and_stand_in_a_list(tmp_path):
    for number in range(2):
        (tmp_path / f"{number}").write_bytes(BINARY["RunMetadata"])
    trace = import_trace([str(tmp_path / "0"), tmp_path / "1", run_metadata(OPS)])
    assert trace.steps()["number"].tolist() == [1, 2, 3]


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "a int is no trace; expected a file of RunMetadata or StepStats, a"),
        (None, r"a NoneType is no trace; expected .*\*\.xplane\.pb of tf\.profiler, or Chrome"),
        ([], "an empty list holds no step; expected a file of RunMetadata"),
        (text_format, "a module is no trace"),
        (
            [run_metadata(OPS), profile()],
            r"item 1 of the list is tensorflow\.profiler\.XSpace",
        ),
        ([5], "item 0 of the list is a int; expected RunMetadata or StepStats: other traces hold"),
        (profile().planes[0], r"tensorflow\.profiler\.XPlane is no trace; expected"),
    ],
)
def test_what_is_no_trace_is_named(source, message):
    with pytest.raises(TraceError, match=message):
        import_trace(source)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x` is empty; expected a file of RunMetadata"),
        (b" \n", "x` is empty"),
        (b"PAR1", r"x` is no trace: it is a Parquet file; `wb\.load_trace` reads one that `Tr"),
        (b"PK\3\4..", "x` is no trace: it is a zip archive; unpack it first"),
        (b"\x28\xb5\x2f\xfd..", "x` is no trace: it is compressed by zstd; unpack it first"),
        (b"BZh91AY", "x` is no trace: it is compressed by bz2; unpack it first"),
        (
            gzip.compress(gzip.compress(b"[]", mtime=0), mtime=0),
            "it is compressed by gzip; unpack it first",
        ),
        (b"a/b" + bytes(254) + b"ustar\0" + b"00" * 200, "it is a tar archive; unpack it first"),
        (b"\n <!DOCTYPE html><html>", "x` is no trace: it is a web page; expected a file of Run"),
        ("[1]".encode("utf-16"), "x` is no trace: it is text in UTF-16; save it as UTF-8"),
        ("[1]".encode("utf-16-be"), "it is text in UTF-16; save it as UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "with `git lfs pull`"),
        (b"SQLite format 3\0", "x` is no trace: it is an SQLite database; expected a file of R"),
        (b"label\tI1\n", "x` is no trace: no message of TensorFlow"),
        (b'step_stats { dev_stats { device: "a" ', "no whole RunMetadata in text form: .*; write"),
        (b"planes { colour: 3 }", r"no whole XSpace in text form: 1:10 : .*colour"),
        (b"\x1f\x8b\x08", "x` is damaged: .*; write or copy it again"),
        (RunMetadata().SerializeToString() or b"\n\x00", "RunMetadata: nothing in it"),
        (BINARY["RunMetadata"][:-3], "RunMetadata: Error parsing message"),
        (BINARY["XSpace"][:-3], "XSpace: Error parsing message"),
    ],
)
def test_a_file_of_another_kind_is_named(tmp_path, data, message):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(TraceError, match=message):
        import_trace(tmp_path / "x")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TraceError, match="none` cannot be read: No such file or directory; expe"):
        import_trace(tmp_path / "none")


def test_a_directory_names_the_last_profile_in_it(tmp_path):
    with pytest.raises(TraceError, match=f"`{tmp_path}` is a directory; expected a file"):
        import_trace(tmp_path)
    for day in ("2026_01_01", "2026_01_02"):
        (tmp_path / "plugins" / "profile" / day).mkdir(parents=True)
        (tmp_path / "plugins" / "profile" / day / "host.xplane.pb").write_bytes(BINARY["XSpace"])
    with pytest.raises(TraceError, match=r"the last profile in it is `.*2026_01_02/host\.xplane"):
        import_trace(tmp_path)


def test_a_name_that_no_file_can_have_is_a_refusal():
    for name in ("a\0b", "n" * 300):
        with pytest.raises(TraceError, match="cannot be read: .*; expected a file of RunMetadata"):
            import_trace(name)


def test_a_device_is_refused_and_a_pipe_is_read(tmp_path):
    with pytest.raises(TraceError, match="/dev/zero` is a device or a socket; expected a file of"):
        import_trace("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    for data in FILES.values():
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
        writer.start()
        assert len(import_trace(tmp_path / "pipe").events) == 2
        writer.join()


def test_a_file_name_may_be_no_text(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.json")
    path.write_bytes(FILES["JSON"])
    trace = import_trace(path)
    assert trace.meta.title == "caf\\xe9.json"
    trace.save(tmp_path / "x.parquet")


def test_a_fault_of_an_event_names_the_file(tmp_path):
    (tmp_path / "x").write_bytes(b'[{"ph": "X"}]')
    with pytest.raises(TraceError, match=r"x` is no trace: event 0 has no `name`: a complete"):
        import_trace(tmp_path / "x")


# --- damage -------------------------------------------------------------------------------------


def trace_or_refusal(path) -> None:
    """A file that still parses may hold a whole trace; one that does not is refused."""
    with contextlib.suppress(TraceError):
        import_trace(path).self_check()


DAMAGE = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4)


@given(name=st.sampled_from(sorted(FILES)), at=st.integers(0, 10**6))
def test_a_cut_file_is_no_half_trace(tmp_path_factory, name, at):
    path = tmp_path_factory.mktemp("cut") / "x"
    data = FILES[name]
    path.write_bytes(data[: at % len(data)])
    # A text or a profile may be cut between two planes, which is as whole as before.
    if "XSpace" in name:
        trace_or_refusal(path)
    elif name == "JSON":
        # Whole events are read, and the rest is said.
        with contextlib.suppress(TraceError):
            assert "end of a file that is cut off" in import_trace(path).meta.left_out
    elif data[: at % len(data)].strip() != data.strip():
        with pytest.raises(TraceError):
            import_trace(path)


@given(name=st.sampled_from(sorted(FILES)), damage=DAMAGE)
@example(name="binary RunMetadata", damage=[(0, 0)])
def test_damage_is_a_refusal_or_nothing(tmp_path_factory, name, damage):
    data = bytearray(FILES[name])
    for place, byte in damage:
        data[place % len(data)] = byte
    path = tmp_path_factory.mktemp("damaged") / "x"
    path.write_bytes(data)
    trace_or_refusal(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> bytes:
    return own_json(tmp_path_factory.mktemp("own"), staged_trace(2))


@given(damage=DAMAGE)
def test_damage_to_what_to_chrome_wrote_too(tmp_path_factory, written, damage):
    data = bytearray(written)
    for place, byte in damage:
        data[place % len(data)] = byte
    path = tmp_path_factory.mktemp("damaged") / "x"
    path.write_bytes(data)
    trace_or_refusal(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
FIELDS = ("ph", "name", "ts", "dur", "pid", "tid", "args", "cat")


@given(event=st.sampled_from(SLICES), field=st.sampled_from(FIELDS), value=JSON)
def test_any_value_of_a_field_is_read_or_refused(tmp_path_factory, event, field, value):
    path = tmp_path_factory.mktemp("field") / "x"
    path.write_text(json.dumps([*SLICES, {**event, field: value}]))
    trace_or_refusal(path)


@given(where=st.lists(st.integers(0, 40), max_size=3), value=JSON)
def test_any_value_in_what_to_chrome_wrote_is_read_or_refused(tmp_path_factory, where, value):
    folder = tmp_path_factory.mktemp("value")
    document = json.loads(own_json(folder, unstaged_trace(1)))
    held = document
    for step in where:
        inner = list(held) if isinstance(held, dict) else list(range(len(held)))
        if not inner or not isinstance(held[inner[step % len(inner)]], dict | list):
            break
        held = held[inner[step % len(inner)]]
    if held:
        inner = list(held) if isinstance(held, dict) else list(range(len(held)))
        held[inner[len(where) % len(inner)]] = value
    (folder / "own.json").write_text(json.dumps(document))
    trace_or_refusal(folder / "own.json")


def test_chrome_json_is_read_without_tensorflow(tmp_path):
    (tmp_path / "x.json").write_bytes(FILES["JSON"])
    code = (
        "import sys, workbench; "
        f"workbench.import_trace({str(tmp_path / 'x.json')!r}); print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""The text of Chrome JSON: cut off, damaged, packed, too long, or no JSON at all."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest

from tests.builders.chrome_events import rows, slice_
from workbench.core.importing import json_text
from workbench.core.importing.import_trace import import_trace
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError

BODY = ",\n".join(json.dumps(slice_(f"op{i}", 10 * i, 5)) for i in range(5))
CUT = {"end of a file that is cut off": 1}


def of_text(path, text) -> Trace:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    trace = import_trace(path)
    trace.self_check()
    return trace


@pytest.mark.parametrize("end", ["]", "", ",\n", "  \n\n", ",\n]", "\n,,]", ",{}]"])
def test_a_list_may_lack_its_end(tmp_path, end):
    trace = of_text(tmp_path / "x", f"[\n{BODY}{end}")
    assert len(trace.events) == 5 and trace.meta.left_out == {}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f'{{"traceEvents": [\n{BODY}\n', 5),
        (f'{{"traceEvents": [\n{BODY}]', 5),
        (f'{{"traceEvents": [\n{BODY}], "other": [{{', 5),
        (f'{{"traceEvents": [\n{BODY[:-20]}', 4),
        (f"[{BODY[:-1]}", 4),
        (f'[{BODY},{{"ph": "X", "name": "cut in a te', 5),
        (f'[{BODY},{{"ph": "X", "args": {{"a": [1, tru', 5),
    ],
)
def test_of_a_file_that_is_cut_off_whole_events_are_read(tmp_path, pack, text, count):
    trace = of_text(tmp_path / "x", pack(text.encode()))
    assert len(trace.events) == count and trace.meta.left_out == CUT


def test_of_a_packed_file_that_is_cut_off_too(tmp_path):
    text = "[" + ",\n".join(json.dumps(slice_(f"op{i}", i, 1)) for i in range(20_000)) + "]"
    packed = gzip.compress(text.encode())
    trace = of_text(tmp_path / "x.json.gz", packed[: len(packed) // 2])
    assert 1000 < len(trace.events) < 20_000 and trace.meta.left_out == CUT


BAD = [
    '{"ph": "X", "name": "C:\\Users", "ts": 1, "dur": 1}',
    '{"ph": "X", "name": "a"b", "ts": 1, "dur": 1}',
    '{"ph": "X", "name": "a, "ts": 1, "dur": 1}',
    '{"ph": "X", "name": a, "ts": 1, "dur": 1}',
    '{"ph": "X", "name": "a", "ts": 01, "dur": 1}',
    '{"ph": "X", "name": "a", "ts": 1 "dur": 1}',
    '{"ph": "X", "name": "a", "ts": ' + "1" * 5000 + ', "dur": 1}',
    '{"ph": "X", "args": ' + "[" * 5000 + "]" * 5000 + "}",
    "undefined",
]


@pytest.mark.parametrize("bad", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("between", [",\n", ",", ", "])
def test_an_event_that_is_no_json_is_left_out(tmp_path, bad, between):
    events = [json.dumps(slice_(f"op{i}", i, 1)) for i in range(50)]
    events.insert(30, bad)
    trace = of_text(tmp_path / "x", f"[{between.join(events)}]")
    assert [name for (name,) in rows(trace, "name")] == [f"op{i}" for i in range(50)]
    ((what, count),) = trace.meta.left_out.items()
    assert count == 1 and what.startswith("events with a fault, the first of them: ")


def test_events_may_stand_on_lines_without_commas(tmp_path):
    text = BODY.replace(",\n", "\n")
    assert len(of_text(tmp_path / "x", f"[{text}]").events) == 5


def test_halves_of_characters_and_bytes_that_are_no_text_are_replaced(tmp_path):
    text = '[{"ph":"X","name":"a\\ud800","ts":1,"dur":1,"args":{"op":"\\uDFFF","name":"caf\xe9"}},'
    text += '{"ph":"X","name":"\\ud83d\\ude00","ts":2,"dur":1}]'
    trace = of_text(tmp_path / "x", text.encode("latin-1"))
    assert rows(trace, "name", "op") == [("caf\ufffd", "\ufffd"), ("\U0001f600", "\U0001f600")]
    trace.save(tmp_path / "x.parquet")
    trace.to_chrome(tmp_path / "again.json")
    assert len(import_trace(tmp_path / "again.json").events) == 2


def test_any_piece_of_the_file_may_end_anywhere(tmp_path, monkeypatch):
    args = {"args": {"a": [{"b": "}, {"}, {}], "op": "Add", "x": "\u00e9\ud83d"}}
    events = [slice_(f"op{i} \U0001f600", i + 0.25, 1e-3, **args) for i in range(40)]
    document = {"a": {"b": [1.5, None, "}]"]}, "traceEvents": events, "baseTimeNanoseconds": 123}
    whole = of_text(tmp_path / "x", json.dumps(document, indent=1)).to_pandas()
    for piece in (1, 2, 3, 7, 64, 500):
        monkeypatch.setattr(json_text, "_PIECE", piece)
        assert import_trace(tmp_path / "x").to_pandas().equals(whole)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"ph":"X","na', "it is cut off before its first event is whole; write or copy it again"),
        ('{"displayTimeUnit": "n', "it is cut off before its first event; write or copy it again"),
        ('[{"ph":"X","name":"\\q"}]', r"it is no JSON at character 19: Invalid .*escape.*; write"),
        ('{"traceEvents" [1]}', "it has 'traceEvents' where a name and a colon were expected"),
        ('{"a": 1; "traceEvents": []}', "it has ';' where a comma was expected; expected Chrome"),
        ("[" * 100_000, "it is nested too deep for a trace"),
        ("[" + "1" * 5000 + "]", "it has a number of too many digits, at character 1"),
        ("[" + '{"ph":"X","name":"\\q"},' * 5000 + "]", "it is no JSON at character 19"),
    ],
)
def test_what_is_no_json_is_refused(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(TraceError, match=f"x.json` is no trace: {message}"):
        import_trace(tmp_path / "x.json")


# --- bounds -------------------------------------------------------------------------------------

ONE = json.dumps(slice_("a", 0, 1))
MANY = "{}," * 300_000 + "{}"
LONG = {
    "empty events": f"[{MANY},{ONE}]",
    "values beside the events": f'{{"x": [{MANY}], "traceEvents": [{ONE}]}}',
    "args of an event": f'[{{"ph": "X", "args": {{"x": [{MANY}]}}}},{ONE}]',
    "text of an event": f'[{{"ph": "X", "name": "{"a" * 900_000}"}},{ONE}]',
    "white space": "[" + " " * 900_000 + f"{ONE}]",
}


@pytest.mark.parametrize("what", LONG)
def test_a_long_file_is_not_held(tmp_path, monkeypatch, what):
    monkeypatch.setattr(json_text, "_PIECE", 1 << 16)
    monkeypatch.setattr(json_text, "_LONGEST", 1 << 17)
    (tmp_path / "x").write_text(LONG[what])
    tracemalloc.start()
    try:
        assert len(import_trace(tmp_path / "x").events) == 1
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("first", "fill"), [(b"[", b" "), (b"\n", b"\0")], ids=["JSON", "protobuf"]
)
def test_a_file_that_unpacks_to_far_more_is_refused_before_it_is_held(tmp_path, first, fill):
    (tmp_path / "x.gz").write_bytes(gzip.compress(first) + gzip.compress(fill * (1 << 22)) * 20)
    tracemalloc.start()
    try:
        with pytest.raises(TraceError, match="x.gz` unpacks to more than 64 MB, 100 times its si"):
            import_trace(tmp_path / "x.gz")
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


def test_gzip_and_a_byte_order_mark_are_read(tmp_path):
    text = b"\xef\xbb\xbf" + json.dumps([slice_("a", 0, 1)]).encode()
    (tmp_path / "x.json.gz").write_bytes(gzip.compress(text))
    assert len(import_trace(tmp_path / "x.json.gz").events) == 1

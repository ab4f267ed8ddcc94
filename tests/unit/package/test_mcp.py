"""`workbench mcp`: an agent's requests, answered in short, and never from outside of the folder."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.comparisons import every_toggle_comparison
from tests.builders.critical_paths import three_steps
from workbench.cli.mcp.protocol import MOST_BYTES, VERSIONS, NoToolError, Server
from workbench.cli.mcp.short import MOST_BYTES as MOST_OF_ANSWER
from workbench.cli.mcp.short import Results, short
from workbench.cli.mcp.tools import WorkbenchTools
from workbench.cli.sources import trace_of
from workbench.errors import OptionError


@pytest.fixture
def folder(tmp_path):
    """A folder with a trace and results, and beside it a trace that is none of its business."""
    home = tmp_path / "home"
    home.mkdir()
    three_steps().save(home / "trace.parquet")
    every_toggle_comparison(three_steps(), three_steps()).save(home / "results/comparison")
    three_steps().save(tmp_path / "outside.parquet")
    (home / "link.parquet").symlink_to(tmp_path / "outside.parquet")
    return home


def answers(
    tools: Any, *lines: Any, grace_s: float = 60.0, progress_s: float = 60.0
) -> list[dict[str, Any]]:
    """What a server answers to lines, or to messages."""
    given = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in lines]
    write = io.BytesIO()
    Server(tools, write, grace_s, progress_s).serve(io.BytesIO(b"\n".join(given) + b"\n"))
    return [json.loads(line) for line in write.getvalue().splitlines()]


def request(identity: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def called(folder: Any, name: str, *, run: bool = False, **arguments: Any) -> tuple[Any, bool]:
    """What a tool answers, and whether that is an error."""
    tools = WorkbenchTools(folder, run)
    (found,) = answers(tools, request(1, "tools/call", name=name, arguments=arguments))
    (content,) = found["result"]["content"]
    assert len(content["text"].encode()) <= MOST_OF_ANSWER
    failed = found["result"]["isError"]
    return content["text"] if failed else json.loads(content["text"]), failed


def test_a_trace_is_read_once_until_it_changes(folder, monkeypatch):
    reads = []
    monkeypatch.setattr(
        "workbench.cli.mcp.tools.trace_of", lambda *path: reads.append(path) or trace_of(*path)
    )
    tools = WorkbenchTools(folder, False)
    for _ in range(2):
        tools.call("findings", {"source": "trace.parquet"})
        tools.call("critical_path", {"source": "trace.parquet"})
    assert len(reads) == 1
    os.utime(folder / "trace.parquet", ns=(1, 1))
    tools.call("critical_path", {"source": "trace.parquet"})
    assert len(reads) == 2


@pytest.mark.parametrize("token", ["mine", 7, None])
def test_a_client_that_asks_for_progress_is_told_of_it(token):
    class Slow:
        instructions = ""

        def call(self, name, arguments):
            time.sleep(0.3)
            return "done"

    meta = {} if token is None else {"_meta": {"progressToken": token}}
    call = request(1, "tools/call", name="slow", arguments={}, **meta)
    *told, last = answers(Slow(), call, progress_s=0.05)
    assert last["result"]["content"][0]["text"] == "done"
    assert bool(told) is (token is not None)
    for message in told:
        assert message["method"] == "notifications/progress"
        assert message["params"]["progressToken"] == token and message["params"]["progress"] > 0


def test_traces_of_others_are_listed_by_what_is_in_them(tmp_path):
    events = b'{"traceEvents": [{"ph": "X", "ts": 1, "dur": 2, "name": "train 1"}]}'
    (tmp_path / "step.json").write_bytes(events)
    (tmp_path / "step.json.gz").write_bytes(gzip.compress(events))
    (tmp_path / "other.json").write_text('{"name": "no trace"}')
    (tmp_path / "damaged.json.gz").write_bytes(events)
    found, failed = called(tmp_path, "list_files")
    assert not failed and found["files"] == [
        {"path": "step.json", "what": "trace"},
        {"path": "step.json.gz", "what": "trace"},
    ]


def test_a_client_is_told_what_there_is(folder):
    asked = request("a", "initialize", protocolVersion="2024-11-05", capabilities={})
    newer = request("b", "initialize", protocolVersion="9999-01-01")
    begun = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    first, second, third, alive = answers(
        WorkbenchTools(folder, False), asked, begun, newer, request(3, "tools/list"),
        request(4, "ping"),
    )  # fmt: skip
    assert first["result"]["protocolVersion"] == "2024-11-05"
    assert second["result"]["protocolVersion"] == VERSIONS[0]
    assert "findings" in first["result"]["instructions"]
    names = [each["name"] for each in third["result"]["tools"]]
    assert "findings" in names and "compare" not in names
    for each in third["result"]["tools"]:
        assert set(each["inputSchema"]["required"]) <= set(each["inputSchema"]["properties"])
    assert alive["result"] == {}
    with_runs = WorkbenchTools(folder, True).described()
    assert [each["name"] for each in with_runs] == [*names, "compare"]


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("list_files", {}, "files"),
        ("findings", {"source": "trace.parquet"}, "findings"),
        ("findings", {"source": "results"}, "findings"),
        ("critical_path", {"source": "trace.parquet"}, "critical path"),
        ("critical_path", {"source": "results"}, "critical path"),
        ("results", {"source": "results"}, "comparison"),
        ("code", {"toggle": "smart_stage+auto_fused"}, "code"),
        ("code", {"toggle": "auto_fused", "program": "function"}, "code"),
    ],
)
def test_each_tool_answers_in_short(folder, name, arguments, kind):
    found, failed = called(folder, name, **arguments)
    assert not failed and found["kind"] == kind


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("findings", {"source": "../outside.parquet"}, "is not below the server's folder"),
        ("findings", {"source": "/etc/passwd"}, "is not below the server's folder"),
        ("findings", {"source": "link.parquet"}, "is not below the server's folder"),
        ("findings", {"source": "a\0b"}, "a path with a NUL is none"),
        ("findings", {"source": "no"}, "cannot be read: No such file"),
        ("findings", {"source": 3}, "source is 3; expected a string"),
        ("findings", {"source": True}, "source is True; expected a string"),
        ("findings", {}, "findings needs source"),
        ("findings", {"source": "results", "variant": "x"}, "no variant 'x' has a trace"),
        ("findings", {"file": "x"}, "findings takes no 'file'; expected source, variant"),
        ("more", {"handle": "r7"}, "there is no result 'r7'"),
        ("predict", {"trace": "trace.parquet"}, "the trace has a stage"),
        ("code", {"toggle": "stages"}, "there is no toggle 'stages'"),
        ("code", {"toggle": "stage", "program": "x"}, "expected graph or function"),
        ("predict", {"trace": "trace.parquet", "toggles": "stage"}, "expected a list of texts"),
        (
            "predict",
            {"trace": "trace.parquet", "program": "my_model.py:build"},
            "this server runs no programs",
        ),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(folder, name, arguments, message):
    said, failed = called(folder, name, **arguments)
    assert failed and message in said


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("../evil.py:build", "is not below the server's folder"),
        ("no_model", "expected one of dlrm"),
    ],
)
def test_a_program_runs_from_below_the_folder_alone(folder, program, message):
    (folder.parent / "evil.py").write_text("raise SystemExit('ran')")
    said, failed = called(folder, "compare", run=True, program=program)
    assert failed and message in said


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", -32700),
        (b"\xff\xfe{}", -32700),
        (b"[" * 100_000, -32700),
        (b"[1]", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "nonsense"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {}}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}', -32602),
        (b"x" * (MOST_BYTES + 100), -32600),
    ],
)
def test_a_malformed_request_is_an_error_and_the_server_goes_on(folder, line, code):
    first, second = answers(WorkbenchTools(folder, False), line, request(7, "ping"))
    by_id = {each["id"]: each for each in (first, second)}
    assert by_id[7]["result"] == {}
    (failed,) = (each for each in (first, second) if "error" in each)
    assert failed["error"]["code"] == code


@given(line=st.binary(max_size=200).filter(lambda each: each.strip(b"\0 \t\r\n")))
def test_no_line_ends_the_server(line):
    class Nothing:
        instructions = ""

        def described(self) -> list[dict[str, Any]]:
            return []

        def call(self, name: str, arguments: Any) -> str:
            raise NoToolError(f"there is no tool {name!r}")

    assert answers(Nothing(), line, request("end", "ping"))[-1]["id"] == "end"


@pytest.mark.parametrize("identity", [[1], {}, None, 1.5, "no", 10**30])
def test_a_cancellation_of_nothing_is_passed_over(folder, identity):
    params = {"requestId": identity}
    odd = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert answers(WorkbenchTools(folder, False), odd, request(1, "ping"))[0]["result"] == {}


@pytest.mark.parametrize("link", ["comparison", "comparison.json", "trace-0.parquet"])
def test_results_are_not_read_through_a_link_that_leads_elsewhere(folder, link):
    outside = folder.parent / "elsewhere"
    (folder / "results/comparison").rename(outside)
    inside = folder / "results/comparison"
    if link == "comparison":
        inside.symlink_to(outside)
    else:
        shutil.copytree(outside, inside)
        (inside / link).unlink()
        (inside / link).symlink_to(outside / link)
    (folder / "results/report.html").write_text("<!doctype html>")
    for source in ("results", "results/report.html"):
        said, failed = called(folder, "findings", source=source)
        assert failed and "is not below the server's folder" in said


@pytest.mark.parametrize("error", [KeyError(), KeyError("of a tool"), IndexError("of a tool")])
def test_an_error_of_looking_something_up_is_one_of_the_tool(error):
    class Broken:
        instructions = ""

        def described(self) -> list[dict[str, Any]]:
            return []

        def call(self, name: str, arguments: Any) -> str:
            raise error

    first, second = answers(Broken(), *(request(i, "tools/call", name="x") for i in (1, 2)))
    assert first["result"]["isError"] and second["result"]["isError"]


def test_a_call_that_fails_in_an_unforeseen_way_is_an_error_of_the_tool():
    class Broken:
        instructions = ""

        def described(self) -> list[dict[str, Any]]:
            return []

        def call(self, name: str, arguments: Any) -> str:
            raise ZeroDivisionError("of \x1b[31m a tool")

    (found,) = answers(Broken(), request(1, "tools/call", name="x"))
    assert found["result"]["isError"]
    assert found["result"]["content"][0]["text"] == "ZeroDivisionError: of \\x1b[31m a tool"


def test_a_cancelled_call_has_no_answer_and_a_client_that_goes_ends_what_runs():
    class Waiting:
        instructions = ""

        def described(self) -> list[dict[str, Any]]:
            return []

        def call(self, name: str, arguments: Any) -> str:
            from workbench.experiments.worker.wire.cancellation import require_not_cancelled

            while True:
                require_not_cancelled()

    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    call = request(1, "tools/call", name="x")
    assert answers(Waiting(), call, cancelled, request(2, "ping")) == [
        {"jsonrpc": "2.0", "id": 2, "result": {}}
    ]
    assert answers(Waiting(), call, grace_s=0.1) == []


class TestShort:
    def test_long_lists_are_cut_and_counted(self):
        found = json.loads(short({"answer": "yes", "rows": [{"x": "y" * 90}] * 500}))
        assert found["answer"] == "yes"
        assert found["left_out"]["rows"] == 500 - len(found["rows"])

    @given(
        st.dictionaries(
            st.sampled_from("abc"),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(),
                lambda inner: (
                    st.lists(inner, max_size=30) | st.dictionaries(st.sampled_from("xyz"), inner)
                ),
                max_leaves=60,
            ),
        )
    )
    def test_every_document_fits(self, document):
        assert len(short(document).encode()) <= MOST_OF_ANSWER

    def test_one_of_many_long_names_fits(self):
        document = {f"{number}{chr(0x10348) * 200}": None for number in range(300)}
        assert len(short(document).encode()) <= MOST_OF_ANSWER

    def test_more_gives_every_item_of_a_list_once(self):
        kept = Results()
        rows = [{"number": number, "text": "z" * 100} for number in range(300)]
        handle = json.loads(kept.add({"kind": "x", "rows": rows}))["handle"]
        seen, start = [], 0
        while start is not None:
            text = kept.more(handle, "rows", start)
            assert len(text.encode()) <= MOST_OF_ANSWER
            page = json.loads(text)
            seen += [each["number"] for each in page["items"]]
            start = page["next"]
        assert seen == list(range(300))

    def test_an_item_larger_than_an_answer_is_cut(self):
        kept = Results()
        kept.add({"rows": [{"name": "n" * 5000, "parts": ["p" * 500] * 50}] * 3})
        assert len(kept.more("r1", "rows", 0).encode()) <= MOST_OF_ANSWER
        assert json.loads(kept.more("r1", "rows.0.parts", 0))["of"] == 50

    @pytest.mark.parametrize(("path", "said"), [("x", "it has rows"), ("rows.9", "has 1 items")])
    def test_a_part_that_is_not_there_is_said(self, path, said):
        kept = Results()
        kept.add({"rows": [1]})
        with pytest.raises(OptionError, match=said):
            kept.more("r1", path, 0)

    def test_old_results_go(self):
        kept = Results(most=2)
        for number in range(3):
            kept.add({"number": number})
        assert json.loads(kept.more("r3", "number", 0)) == {"value": 2}
        with pytest.raises(OptionError, match="ask for it again"):
            kept.more("r1", "number", 0)


def test_the_command_speaks_on_stdout_alone_and_loads_no_web_server(folder):
    script = f"""
        import atexit, os, sys
        web = ("http.server", "starlette", "uvicorn", "aiohttp", "tornado", "mcp", "tensorflow")
        atexit.register(lambda: print(*(name for name in web if name in sys.modules), "loaded",
                                      file=sys.stderr))
        from workbench.cli.mcp import tools
        from workbench.cli.main import main
        described = tools.WorkbenchTools.described
        def says(self):
            print("a word of a library")
            os.write(1, b"a word of a child\\n")
            return described(self)
        tools.WorkbenchTools.described = says
        sys.exit(main(["mcp", "--folder", {str(folder)!r}]))
    """
    asked = [request(1, "initialize"), request(2, "tools/list")]
    asked.append(request(3, "tools/call", name="findings", arguments={"source": "trace.parquet"}))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        input="\n".join(map(json.dumps, asked)) + "\n",
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 2, 3]
    assert "a word of a library" in done.stderr and "a word of a child" in done.stderr
    assert done.stderr.splitlines()[-1].strip() == "loaded"

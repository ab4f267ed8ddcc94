"""An agent measures a program over the Model Context Protocol, and goes away in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest

from tests.integration.package.test_cli_own_program import GRAPH

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path):
    (tmp_path / "my_model.py").write_text(GRAPH)
    command = [sys.executable, "-m", "workbench", "mcp", "--folder", str(tmp_path), "--allow-run"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def send(server: Any, tool: str, **arguments: Any) -> None:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": params}
    server.stdin.write(f"{json.dumps(message)}\n".encode())
    server.stdin.flush()


def received(server: Any) -> dict[str, Any]:
    result = json.loads(server.stdout.readline())["result"]
    assert not result["isError"], result
    return json.loads(result["content"][0]["text"])


def test_what_it_measures_is_saved_and_can_be_asked_about(server, tmp_path):
    send(server, "compare", program="my_model.py:build", toggles=["stage"], budget="2s")
    found = received(server)
    assert found["kind"] == "comparison" and len(found["variants"]) == 2
    assert (tmp_path / "results/comparison/comparison.json").is_file()
    send(server, "findings", source="results", variant="stage")
    assert received(server)["variant"] == "stage"


def test_a_client_that_goes_leaves_no_process(server):
    send(server, "compare", program="my_model.py:build", budget="5min")
    own, end_s = psutil.Process(server.pid), time.monotonic() + 60
    while len(started := own.children(recursive=True)) < 2 and time.monotonic() < end_s:
        time.sleep(0.1)
    server.stdout.close()
    server.stdin.close()
    assert server.wait(60) == 0
    _, alive = psutil.wait_procs(started, timeout=10)
    assert started and not alive

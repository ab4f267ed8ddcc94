"""The Model Context Protocol on stdio: JSON-RPC, a message a line.

Written out here, because the protocol's own package imports a web server with its login and
cryptography, and a server on stdio has no use for either. Requests are read while a tool runs: one
may ask whether the server is alive, or cancel the tool.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Protocol

import workbench
from workbench.errors import WorkbenchError, cut, visible
from workbench.experiments.worker.wire.cancellation import cancellable

# The newest first: a client that asks for none of them is told of the first.
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
# A request names files and toggles; what is longer is none.
MOST_BYTES = 1 << 20
_MOST_CALLS = 100
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
_NO_ANSWER = object()


class Tools(Protocol):
    """What a server offers."""

    instructions: str

    def described(self) -> list[dict[str, Any]]:
        """Name, description and schema of the arguments of each tool."""

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers.

        Raises:
          NoToolError: there is no such tool.
          WorkbenchError: it cannot do it; the message says why.
        """


class NoToolError(Exception):
    """There is no tool of that name; the text says so."""


class RequestError(Exception):
    """A request that cannot be answered: its code of JSON-RPC, and a sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Server:
    """Answers requests one after another; those about the server itself at once."""

    def __init__(
        self, tools: Tools, write: BinaryIO, grace_s: float = 10.0, progress_s: float = 5.0
    ) -> None:
        """A server that reads nothing yet.

        Args:
          tools: what it offers.
          write: where its messages go.
          grace_s: how long calls go on when the client has closed its end.
          progress_s: after how long a client that asks for progress is told that a call goes on.
        """
        self._tools, self._write, self._grace_s = tools, write, grace_s
        self._progress_s = progress_s
        self._writing = threading.Lock()
        self._calls: queue.SimpleQueue[tuple[Any, Mapping[str, Any]] | None] = queue.SimpleQueue()
        # By the id of each call that is not answered yet what ends it.
        self._open: dict[Any, threading.Event] = {}

    def serve(self, read: BinaryIO) -> None:
        """Answers until the client closes its end; what takes longer then is ended."""
        worker = threading.Thread(target=self._work, name="workbench-mcp", daemon=True)
        worker.start()
        while line := read.readline(MOST_BYTES + 1):
            if len(line) > MOST_BYTES:
                while line and not line.endswith(b"\n"):
                    line = read.readline(MOST_BYTES)
                self._fail(None, RequestError(INVALID_REQUEST, "the request is too long"))
            elif line.strip():
                self._take(line)
        self._calls.put(None)
        worker.join(self._grace_s)
        self._cancel_all()
        worker.join()

    def _cancel_all(self) -> None:
        for event in list(self._open.values()):
            event.set()

    def _take(self, line: bytes) -> None:
        identity = None
        try:
            message = _message(line)
            identity = message.get("id")
            answer = self._answered(message)
        except RequestError as error:
            self._fail(identity, error)
            return
        if answer is not _NO_ANSWER:
            self._send({"id": identity, "result": answer})

    def _answered(self, message: Mapping[str, Any]) -> Any:
        method, params = message["method"], message.get("params") or {}
        if "id" not in message:
            if method == "notifications/cancelled":
                asked = params.get("requestId")
                event = self._open.get(asked) if isinstance(asked, str | int) else None
                if event is not None:
                    event.set()
            return _NO_ANSWER
        if method == "initialize":
            return self._initialized(params)
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": self._tools.described()}
        if method != "tools/call":
            raise RequestError(NO_METHOD, f"there is no method {cut(method, 80)!r}")
        arguments = params.get("arguments") or {}
        if not isinstance(params.get("name"), str) or not isinstance(arguments, Mapping):
            raise RequestError(
                INVALID_PARAMS, "tools/call takes the name of a tool, and arguments by name"
            )
        if message["id"] in self._open:
            raise RequestError(INVALID_REQUEST, "a request of this id is not answered yet")
        if len(self._open) >= _MOST_CALLS:
            raise RequestError(INVALID_REQUEST, f"{_MOST_CALLS} requests wait already")
        self._open[message["id"]] = threading.Event()
        self._calls.put((message["id"], params))
        return _NO_ANSWER

    def _initialized(self, params: Mapping[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "workbench", "version": workbench.__version__},
            "instructions": self._tools.instructions,
        }

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            identity, params = call
            event = self._open[identity]
            try:
                if not event.is_set():
                    with cancellable(event):
                        self._call(identity, params)
            except RequestError as error:
                self._fail(identity, error)
            except KeyboardInterrupt:
                # A client that has cancelled a request expects no answer.
                pass
            finally:
                del self._open[identity]

    def _call(self, identity: Any, params: Mapping[str, Any]) -> None:
        try:
            with self._progress(params.get("_meta")):
                text = self._tools.call(params["name"], params.get("arguments") or {})
            failed = False
        except NoToolError as error:
            raise RequestError(INVALID_PARAMS, str(error)) from None
        except WorkbenchError as error:
            text, failed = visible(cut(str(error))), True
        except Exception as error:
            # Whatever a program of the user's raises, the server goes on.
            text, failed = visible(cut(f"{type(error).__name__}: {error}")), True
        content = [{"type": "text", "text": text}]
        self._send({"id": identity, "result": {"content": content, "isError": failed}})

    @contextlib.contextmanager
    def _progress(self, meta: Any) -> Iterator[None]:
        """Tells a client that asks for it that a call goes on: else it may give up."""
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if not isinstance(token, str | int):
            yield
            return
        ended = threading.Event()

        def tell() -> None:
            begun_s = time.monotonic()
            while not ended.wait(self._progress_s):
                took_s = round(time.monotonic() - begun_s, 1)
                params = {"progressToken": token, "progress": took_s, "message": f"{took_s:.0f} s"}
                self._send({"method": "notifications/progress", "params": params})

        teller = threading.Thread(target=tell, name="workbench-mcp-progress", daemon=True)
        teller.start()
        try:
            yield
        finally:
            ended.set()
            teller.join()

    def _fail(self, identity: Any, error: RequestError) -> None:
        self._send({"id": identity, "error": {"code": error.code, "message": str(error)}})

    def _send(self, message: Mapping[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, allow_nan=False)
        try:
            with self._writing:
                self._write.write(f"{line}\n".encode())
                self._write.flush()
        except BrokenPipeError:
            # The client is gone: nobody waits for what still runs.
            self._cancel_all()


def _message(line: bytes) -> dict[str, Any]:
    """A request or a notification.

    Raises:
      RequestError: it is neither.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        raise RequestError(PARSE_ERROR, "the line is no JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RequestError(INVALID_REQUEST, "expected one message of JSON-RPC 2.0 a line")
    if not isinstance(message.get("method"), str):
        raise RequestError(INVALID_REQUEST, "the message has no method")
    if not isinstance(message.get("id", ""), str | int):
        raise RequestError(INVALID_REQUEST, "the id of a request is a text or a whole number")
    if not isinstance(message.get("params") or {}, dict):
        raise RequestError(INVALID_PARAMS, "parameters are given by name")
    return message

"""A TCP proxy that hands on what it receives a fixed time later, as a longer way would."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType


class DelayingProxy:
    """Listens on a free local port, and forwards to another one until it is left.

    What is sent to the other port arrives `delay_s` later, each piece by itself: requests that are
    sent together arrive together. What comes back is not delayed.
    """

    def __init__(self, port: int, delay_s: float) -> None:
        self._port, self._delay_s = port, delay_s
        self._loop = asyncio.new_event_loop()
        self._listens = threading.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="delaying-proxy", daemon=True)
        self.port = 0

    def __enter__(self) -> DelayingProxy:
        self._thread.start()
        self._listens.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "localhost", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._listens.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, there = await asyncio.open_connection("localhost", self._port)
        for source, target, delay_s in ((reader, there, self._delay_s), (back, writer, 0.0)):
            task = self._loop.create_task(self._forward(source, target, delay_s))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, delay_s: float
    ) -> None:
        while piece := await source.read(1 << 20):
            if delay_s:
                self._loop.call_later(delay_s, target.write, piece)
            else:
                target.write(piece)
        self._loop.call_later(delay_s, target.close)

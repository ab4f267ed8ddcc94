"""A TCP proxy that hands on what it receives a fixed time later, as a longer way would."""

from __future__ import annotations

import subprocess
from types import TracebackType

from tests.bench.compiled import compiled


class DelayingProxy:
    """Listens on a free local port, and forwards to another one until it is left.

    What is sent to the other port arrives `delay_s` later, each piece by itself: requests that are
    sent together arrive together. What comes back is not delayed. It is a process of its own
    (native/bench/delaying_proxy.cc), that takes little of the cores that steps are measured on.
    """

    def __init__(self, port: int, delay_s: float) -> None:
        delay_us = str(round(delay_s * 1e6))
        self._command = [compiled("delaying_proxy", "-std=c++17"), str(port), delay_us]
        self.port = self.pid = 0

    def __enter__(self) -> DelayingProxy:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        self.port, self.pid = int(self._process.stdout.readline()), self._process.pid
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

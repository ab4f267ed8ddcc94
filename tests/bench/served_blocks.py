"""Blocks of steps that another process runs: it is told by a line "name steps", and answers with
the seconds that they took. So what needs a process of its own, another Python or another number of
threads, takes turns with what runs here; it sleeps meanwhile."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_END = "-"


def serve(
    blocks: Mapping[str, Callable[[int], float]], problems: Mapping[str, str] | None = None
) -> None:
    """Runs blocks as standard input asks for them, till its end.

    Args:
      blocks: by name what runs as many steps as it is given and returns their seconds.
      problems: by name why something is not there.
    """
    print(json.dumps({"names": list(blocks), "problems": dict(problems or {})}), flush=True)
    for line in sys.stdin:
        if line.strip() == _END:
            break
        name, steps = line.split()
        print(blocks[name](int(steps)), flush=True)


class Served:
    """A process that serves blocks.

    Args:
      command: that serves.
      environment: variables that it has beside this process's.

    Attributes:
      blocks: by name what runs as many steps as it is given there and returns their seconds.
      problems: by name why something is not there.
    """

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        found: dict[str, Any] = json.loads(self._read())
        self.problems: dict[str, str] = found["problems"]
        self.blocks = {name: functools.partial(self._run, name) for name in found["names"]}

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args!r} ended: {self._process.wait()}")
        return line

    def _run(self, name: str, steps: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {steps}\n")
        self._process.stdin.flush()
        return float(self._read())

    def end(self) -> None:
        """Ends the process; one that does not go in a minute is killed."""
        try:
            self._process.communicate(f"{_END}\n", timeout=60)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()

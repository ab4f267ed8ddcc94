"""The bytes of a trace's file, which may be gzip: read in pieces, and never without a bound."""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import TraceError, first_line
from workbench.files.file_kinds import HEAD_BYTES, PARQUET, FileKind, compression_of, kind_of

EXPECTED = (
    "expected a file of RunMetadata or StepStats, a *.xplane.pb of tf.profiler, or Chrome trace "
    "JSON; or one of these messages, or a list of RunMetadata, one for each step"
)
_PIECE = 1 << 20
# Traces become 10 to 30 times as long when they are unpacked, and gzip can make it a thousand.
_MOST_TIMES = 100
_ALWAYS_BYTES = 64 << 20
# More than a message of protobuf can have; what comes through a pipe has no size before it ends.
_MOST_PIPED = 2 << 30


class TraceFile:
    """An open file of a trace.

    Attributes:
      path: the file.
      head: its first bytes, unpacked, behind white space.
      cut: whether the packed file ends too early, once that was read.
    """

    def __init__(self, path: Path, raw: BinaryIO) -> None:
        """Reads the begin of an open file; `opened` checks what it is.

        Raises:
          TraceError: it is empty, damaged, or of a kind that is no trace.
        """
        self.path, self.cut = path, False
        self._raw = raw
        packed = os.fstat(raw.fileno()).st_size
        self._is_gzip = compression_of(raw.read(HEAD_BYTES)) == "gzip"
        self._most = max(_ALWAYS_BYTES, _MOST_TIMES * packed) if self._is_gzip else packed
        self._rewind()
        piece = self._bytes(HEAD_BYTES)
        while piece and not piece.strip():
            piece = self._bytes(_PIECE)
        if not piece:
            self._require_whole()
            raise TraceError(f"`{path}` is empty; {EXPECTED}")
        self.head = self._pending = piece.lstrip()

    def read(self, size: int) -> bytes:
        """The next bytes, about so many; none at the end.

        Raises:
          TraceError: the file is damaged, or unpacks to far more than a trace can have.
        """
        pending, self._pending = self._pending, b""
        return pending or self._bytes(size)

    def whole(self) -> bytes:
        """All bytes of the file.

        Raises:
          TraceError: as `read`, or the file is cut off.
        """
        # Nothing is held before it is known how much there is.
        while self.read(_PIECE):
            pass
        self._require_whole()
        self._rewind()
        return self._stream.read()

    def _rewind(self) -> None:
        self._raw.seek(0)
        self._stream: Any = gzip.GzipFile(fileobj=self._raw) if self._is_gzip else self._raw
        self._read, self._pending = 0, b""

    def _bytes(self, size: int) -> bytes:
        try:
            piece: bytes = self._stream.read(size)
        except EOFError:
            self.cut = True
            return b""
        except (OSError, zlib.error) as error:
            raise _damaged(self.path, first_line(error)) from error
        self._read += len(piece)
        if self._read > self._most:
            raise TraceError(
                f"`{self.path}` unpacks to more than {self._most >> 20} MB, {_MOST_TIMES} times "
                "its size, which no trace does; unpack it with gzip -d if it is one"
            )
        return piece

    def _require_whole(self) -> None:
        if self.cut:
            raise _damaged(self.path, "it ends before its end-of-stream marker")


@contextlib.contextmanager
def opened(path: Path) -> Iterator[TraceFile]:
    """Opens a file of a trace; a pipe is read to its end first.

    Raises:
      TraceError: there is no such file, or it is no file of a trace.
    """
    with contextlib.ExitStack() as held:
        try:
            raw = _regular(held, path)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else first_line(error)
            raise TraceError(f"`{path}` cannot be read: {reason}; {EXPECTED}") from error
        file = TraceFile(path, raw)
        kind = kind_of(file.head)
        if kind is not None:
            raise TraceError(f"`{path}` is no trace: it is {_named(kind)}")
        yield file


def _regular(held: contextlib.ExitStack, path: Path) -> BinaryIO:
    """The file, or a file of what a pipe gave."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        found = sorted(path.rglob("*.xplane.pb"))
        there = f"; the last profile in it is `{found[-1]}`" if found else ""
        raise TraceError(f"`{path}` is a directory{there}; {EXPECTED}")
    if not (stat.S_ISREG(mode) or stat.S_ISFIFO(mode)):
        raise TraceError(f"`{path}` is a device or a socket; {EXPECTED}")
    raw = held.enter_context(path.open("rb"))
    if stat.S_ISREG(mode):
        return raw
    return held.enter_context(_kept(path, raw))


@contextlib.contextmanager
def _kept(path: Path, pipe: BinaryIO) -> Iterator[BinaryIO]:
    """A file of what a pipe gives."""
    with tempfile.TemporaryFile() as kept:
        while piece := pipe.read(_PIECE):
            if kept.tell() > _MOST_PIPED:
                raise TraceError(
                    f"`{path}` gives more than {_MOST_PIPED >> 30} GB; write them to a file first"
                )
            kept.write(piece)
        kept.seek(0)
        yield kept


def _named(kind: FileKind) -> str:
    if kind == PARQUET:
        return f"{kind}; `wb.load_trace` reads one that `Trace.save` wrote"
    return f"{kind}; {EXPECTED}" if not kind.remedy else str(kind)


def _damaged(path: Path, what: str) -> TraceError:
    return TraceError(f"`{path}` is damaged: {what}; write or copy it again")

"""Opening a click log: a regular file of text, plain or compressed."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from workbench.errors import DataError
from workbench.files.file_kinds import HEAD_BYTES, UNPACK, FileKind, compression_of, kind_of

_PIECE = 1 << 16
_KINDS = (
    (stat.S_ISDIR, "a directory; give the path of one file inside it"),
    (stat.S_ISFIFO, "a pipe; a log is read several times, so write it to a file first"),
    (stat.S_ISSOCK, "a socket; give the path of a file"),
    (lambda mode: not stat.S_ISREG(mode), "a device; give the path of a file"),
)


class LogFile:
    """The bytes of a log, decompressed as they are read.

    Attributes:
      path: the file.
      compression: "gzip", "zlib", "bz2", "xz" or "zstd"; "" for a plain file.
      size: bytes on disk.
    """

    def __init__(self, path: Path, raw: BinaryIO) -> None:
        """Wraps an open regular file; `open_log` checks that it is one.

        Raises:
          DataError: the file is of a kind that nothing here reads.
        """
        head = raw.read(HEAD_BYTES)
        raw.seek(0)
        self.compression = _compression(head)
        kind = None if self.compression else kind_of(head)
        if kind is not None:
            raise DataError(f"{path}: is {_to_text(kind)}")
        self.path = path
        self.size = os.fstat(raw.fileno()).st_size
        self._raw = raw
        self._text = _decompressed(raw, self.compression)
        self._head = self._read(HEAD_BYTES) if self.compression else b""
        kind = kind_of(self._head)
        if kind is not None:
            raise DataError(
                f"{path}: is compressed by {self.compression}, and what it holds is "
                f"{_to_text(kind)}"
            )

    def read(self, size: int) -> bytes:
        """At most `size` bytes of text; none at the end.

        Raises:
          DataError: the compressed file is damaged or cut off.
        """
        head, self._head = self._head[:size], self._head[size:]
        return head or self._read(size)

    def _read(self, size: int) -> bytes:
        try:
            found: bytes = self._text.read(size)
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            what = f"damaged {self.compression} file" if self.compression else "file"
            raise DataError(
                f"{self.path}: this {what} cannot be read on: {error}; copy it again"
            ) from None
        return found

    def position(self) -> int:
        """Bytes of the file on disk that have been read, 0 to `size`."""
        return self._raw.tell()


@contextlib.contextmanager
def open_log(path: Path) -> Iterator[LogFile]:
    """Opens a log for reading.

    Raises:
      DataError: there is no such file, it cannot be opened, is no regular file or an archive.
    """
    try:
        # Opening a pipe would wait until somebody writes to it.
        mode = path.stat().st_mode
        for is_kind, what in _KINDS:
            if is_kind(mode):
                raise DataError(f"{path}: is {what}")
        raw = path.open("rb")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file; give the path of a click log") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror}") from None
    with raw:
        yield LogFile(path, raw)


def _compression(head: bytes) -> str:
    found = compression_of(head)
    if not found and _begins_like_zlib(head):
        return "zlib"
    return found if found != "lz4" else ""


def _begins_like_zlib(head: bytes) -> bool:
    """Whether the first bytes unpack: zlib has no mark that no text could have."""
    if head[:1] != b"\x78":
        return False
    try:
        return bool(zlib.decompressobj().decompress(head))
    except zlib.error:
        return False


class _ZlibFile:
    """The bytes of a file that is compressed by zlib."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._unpack = zlib.decompressobj()

    def read(self, size: int) -> bytes:
        """At most `size` bytes; none at the end."""
        while not self._unpack.eof:
            packed = self._unpack.unconsumed_tail or self._raw.read(_PIECE)
            found = self._unpack.decompress(packed, size)
            if found:
                return found
            if not packed:
                raise EOFError("Compressed file ended before the end-of-stream marker was reached")
        return b""


def _to_text(kind: FileKind) -> str:
    return f"{kind.name}; unpack it to plain text first" if kind.remedy == UNPACK else str(kind)


def _decompressed(raw: BinaryIO, compression: str) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "zlib":
        return _ZlibFile(raw)
    if compression == "bz2":
        return bz2.BZ2File(raw)
    if compression == "xz":
        return lzma.LZMAFile(raw)
    if compression == "zstd":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return raw

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

_HEAD_BYTES = 8
_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
# Read by nothing here: an archive holds files, and no reader of LZ4 frames is installed everywhere.
_ARCHIVES = {
    b"PK\x03\x04": "zip",
    b"7z\xbc\xaf\x27\x1c": "7z",
    b"\x04\x22\x4d\x18": "lz4",
    b"PAR1": "Parquet",
}
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
      compression: "gzip", "bz2", "xz" or "zstd"; "" for plain text.
      size: bytes on disk.
    """

    def __init__(self, path: Path, raw: BinaryIO) -> None:
        """Wraps an open regular file; `open_log` checks that it is one.

        Raises:
          DataError: the file is of a kind that nothing here reads.
        """
        head = raw.read(_HEAD_BYTES)
        raw.seek(0)
        for magic, kind in _ARCHIVES.items():
            if head.startswith(magic):
                raise DataError(f"{path}: is a {kind} file; unpack it to plain text first")
        self.path = path
        self.size = os.fstat(raw.fileno()).st_size
        self.compression = next((c for m, c in _COMPRESSIONS.items() if head.startswith(m)), "")
        self._raw = raw
        self._text = _decompressed(raw, self.compression)

    def read(self, size: int) -> bytes:
        """At most `size` bytes of text; none at the end.

        Raises:
          DataError: the compressed file is damaged or cut off.
        """
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


def _decompressed(raw: BinaryIO, compression: str) -> Any:
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "bz2":
        return bz2.BZ2File(raw)
    if compression == "xz":
        return lzma.LZMAFile(raw)
    if compression == "zstd":
        import pyarrow as pa

        return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
    return raw

"""Records of a TFRecord file that is compressed, in plain Python.

TensorFlow reads two kinds of compression, and of a gzip file that is cut off it gives the first
records as if they were all. Here every kind that a log may have is read, and a cut is an error.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

from workbench.errors import DataError
from workbench.models.data.log_file import LogFile, open_log

# A record: its length and a masked checksum (CRC-32C) of that, its bytes, and a checksum of them.
LENGTH_BYTES, HEADER_BYTES = 8, 12
_FOOTER_BYTES = 4
_LONGEST_BYTES = 16 << 20
_PIECE = 1 << 20
_CRC32C = 0x82F63B78
_CRC_MASK = 0xA282EAD8


def begins_like_records(head: bytes) -> bool:
    """Whether a file that begins so is a TFRecord file; `head` has at least HEADER_BYTES."""
    checksum = int.from_bytes(head[LENGTH_BYTES:HEADER_BYTES], "little")
    return len(head) >= HEADER_BYTES and checksum == _masked_crc(head[:LENGTH_BYTES])


def record_blocks(path: Path, rows: int | None, at_once: int) -> Generator[list[bytes]]:
    """The first records of a file (all when None), some at a time.

    The bytes of a record are not held against their checksum: compressed files have their own.

    Raises:
      DataError: the file is damaged or cut off, or what it holds are no records.
    """
    with open_log(path) as file:
        reader, behind = _Reader(file), 0
        while rows is None or behind < rows:
            most = at_once if rows is None else min(at_once, rows - behind)
            block = reader.take(most, behind)
            if not block:
                return
            yield block
            behind += len(block)


class _Reader:
    """Takes records from the bytes of a file."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._held, self._at = b"", 0

    def take(self, most: int, behind: int) -> list[bytes]:
        """The next records; `behind` of them were taken before."""
        records: list[bytes] = []
        while len(records) < most:
            row = behind + len(records)
            header = self._bytes(HEADER_BYTES)
            if not header:
                break
            length = int.from_bytes(header[:LENGTH_BYTES], "little")
            if not begins_like_records(header):
                self._refuse(row, "what follows is no record")
            if length > _LONGEST_BYTES:
                self._refuse(row, f"a record of {length} bytes follows, which no row has")
            record = self._bytes(length)
            if len(record) + len(self._bytes(_FOOTER_BYTES)) < length + _FOOTER_BYTES:
                self._refuse(row, "it ends inside a record")
            records.append(record)
        return records

    def _bytes(self, size: int) -> bytes:
        """So many bytes; fewer at the end of the file."""
        while len(self._held) - self._at < size:
            more = self._file.read(max(_PIECE, size))
            if not more:
                break
            self._held, self._at = self._held[self._at :] + more, 0
        found = self._held[self._at : self._at + size]
        self._at += len(found)
        return found

    def _refuse(self, row: int, what: str) -> NoReturn:
        raise DataError(
            f"{self._file.path}, behind row {row}: is damaged: {what}; write the file again"
        )


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRCS[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _CRC_MASK) & 0xFFFFFFFF


def _crc_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_CRC32C if byte & 1 else 0)
    return byte


_CRCS = tuple(_crc_of_byte(byte) for byte in range(256))

"""What a file is, by its first bytes: for sentences about files that a reader does not take."""

from __future__ import annotations

import dataclasses

# As many bytes as the rules below look at.
HEAD_BYTES = 512

_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_TAR_AT, _TAR = 257, b"ustar"
UNPACK = "unpack it first"
_GIT_LFS = b"version https://git-lfs.github.com/"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff", b"\x00[", b"\x00{", b"[\x00", b"{\x00")
_PAGES = (b"<!doctype html", b"<html")


@dataclasses.dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
      name: with its article, as in "it is a zip archive".
      remedy: what to do about it; "" where nothing helps.
    """

    name: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.name}; {self.remedy}" if self.remedy else self.name


PARQUET = FileKind("a Parquet file")
_MAGICS = {
    b"PK\x03\x04": FileKind("a zip archive", UNPACK),
    b"PK\x05\x06": FileKind("an empty zip archive"),
    b"7z\xbc\xaf\x27\x1c": FileKind("a 7z archive", UNPACK),
    b"Rar!\x1a\x07": FileKind("a rar archive", UNPACK),
    b"PAR1": PARQUET,
    b"ARROW1": FileKind("an Arrow file"),
    b"\x93NUMPY": FileKind("an array of NumPy"),
    b"\x89HDF\r\n": FileKind("an HDF5 file"),
    b"\x89PNG": FileKind("a picture"),
    b"%PDF-": FileKind("a PDF"),
    b"SQLite format 3\x00": FileKind("an SQLite database"),
    _GIT_LFS: FileKind("a pointer of Git LFS", "fetch the file itself with `git lfs pull`"),
}


def compression_of(head: bytes) -> str:
    """ "gzip", "bz2", "xz", "zstd" or "lz4"; "" for a file that is not compressed."""
    return next((kind for magic, kind in _COMPRESSIONS.items() if head.startswith(magic)), "")


def kind_of(head: bytes) -> FileKind | None:
    """The kind of a file that begins so; None for plain text and what is not known here."""
    for magic, kind in _MAGICS.items():
        if head.startswith(magic):
            return kind
    if head[_TAR_AT:].startswith(_TAR):
        return FileKind("a tar archive", UNPACK)
    if head.startswith(_UTF_16):
        return FileKind("text in UTF-16", "save it as UTF-8")
    if head.lstrip().lower().startswith(_PAGES):
        return FileKind("a web page")
    compression = compression_of(head)
    return FileKind(f"compressed by {compression}", UNPACK) if compression else None

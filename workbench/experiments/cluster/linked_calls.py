"""A function of our own in place of one of the C library's, for a while.

A library calls a function of another one through a table of addresses, which the loader fills.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Iterator
from typing import Any

_PT_DYNAMIC, _PT_RELRO = 2, 0x6474E552
_DT_PLTRELSZ, _DT_STRTAB, _DT_SYMTAB, _DT_JMPREL = 2, 5, 6, 23
# A program header, an entry of the dynamic section, a relocation: as of 64-bit ELF.
_HEADER, _DYNAMIC, _RELOCATION = (
    struct.Struct("=IIQQQQQQ"),
    struct.Struct("=qQ"),
    struct.Struct("=QQq"),
)
_SYMBOL_BYTES = 24
_READ, _READ_WRITE = mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE


class _Loaded(ctypes.Structure):
    """The begin of the loader's dl_phdr_info."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_uint64),
        ("count", ctypes.c_uint16),
    )


_Visit = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Loaded), ctypes.c_size_t, ctypes.c_void_p)


class SlotsUnknownError(Exception):
    """No library of that name calls the function, or the system does not let it be replaced."""


@contextlib.contextmanager
def calling(function: str, instead: Any, *, within: str) -> Iterator[None]:
    """Has loaded libraries call another function while the block runs.

    Args:
      function: name of the C function.
      instead: a ctypes function with the same arguments.
      within: what the file names of the libraries begin with.

    Raises:
      SlotsUnknownError: nothing was changed.
    """
    address = ctypes.cast(instead, ctypes.c_void_p).value or 0
    slots = _slots(function.encode(), within)
    if not slots:
        raise SlotsUnknownError(f"no library {within}… that is loaded calls {function}")
    before = [_replace(slot, address, guarded) for slot, guarded in slots.items()]
    try:
        yield
    finally:
        for (slot, guarded), was in zip(slots.items(), before, strict=True):
            _replace(slot, was, guarded)


def _replace(slot: int, address: int, guarded: bool) -> int:
    """Puts an address into a slot; returns the one that was there."""
    held = ctypes.c_uint64.from_address(slot)
    was = held.value
    if guarded:
        _protect(slot, _READ_WRITE)
    held.value = address
    if guarded:
        _protect(slot, _READ)
    return was


def _protect(slot: int, protection: int) -> None:
    page = slot - slot % mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_int(protection))
    if libc.mprotect(*arguments):
        raise SlotsUnknownError(os.strerror(ctypes.get_errno()))


def _slots(function: bytes, within: str) -> dict[int, bool]:
    """Where libraries keep the address of a function, and whether that is write-protected."""
    slots: dict[int, bool] = {}
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return slots

    def visit(loaded: Any, size: int, data: Any) -> int:
        del size, data
        library = loaded.contents
        if os.path.basename(library.name or b"").startswith(within.encode()):
            slots.update(_slots_of(library, function))
        return 0

    ctypes.CDLL(None).dl_iterate_phdr(_Visit(visit), None)
    return slots


def _slots_of(library: _Loaded, function: bytes) -> dict[int, bool]:
    base = int(library.base)
    headers = _entries(_HEADER, library.headers, library.count * _HEADER.size)
    held = {header[0]: (base + header[3], header[6]) for header in headers}
    if _PT_DYNAMIC not in held:
        return {}
    tags = dict(_entries(_DYNAMIC, *held[_PT_DYNAMIC]))
    if not {_DT_PLTRELSZ, _DT_STRTAB, _DT_SYMTAB, _DT_JMPREL} <= tags.keys():
        return {}
    # The loader has made addresses of these offsets, but not on every system.
    names, symbols, calls = (
        tags[tag] if tags[tag] >= base else base + tags[tag]
        for tag in (_DT_STRTAB, _DT_SYMTAB, _DT_JMPREL)
    )
    start, size = held.get(_PT_RELRO, (0, 0))
    slots = {}
    for offset, symbol, _ in _entries(_RELOCATION, calls, tags[_DT_PLTRELSZ]):
        at = ctypes.c_uint32.from_address(symbols + (symbol >> 32) * _SYMBOL_BYTES).value
        if ctypes.string_at(names + at) == function:
            slots[base + offset] = start <= base + offset < start + size
    return slots


def _entries(kind: struct.Struct, address: int, size: int) -> Iterator[tuple[Any, ...]]:
    """The entries of a table in memory."""
    return kind.iter_unpack(ctypes.string_at(address, size - size % kind.size))

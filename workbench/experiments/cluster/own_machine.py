"""A TensorFlow server that only its own machine reaches.

TensorFlow's servers listen on every address of the machine, have no password, and run any graph
that they are sent; no option of theirs changes that. While a server starts here, the libraries of
TensorFlow call a function of this module in place of the system's `bind`.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from workbench.experiments.cluster.linked_calls import SlotsUnknownError, calling

_LIBRARY = "libtensorflow"
_FAMILY = struct.Struct("=H")
# By family: where the address begins in a sockaddr, and every address.
_EVERYWHERE = {socket.AF_INET: (4, bytes(4)), socket.AF_INET6: (8, bytes(16))}
# Before the bytes of an address of version 4, in a socket of version 6 that serves both.
_MAPPED = bytes(10) + b"\xff\xff"
_ARGUMENTS = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32)
_BIND = ctypes.CFUNCTYPE(ctypes.c_int, *_ARGUMENTS, use_errno=True)


def is_own_machine(addresses: Iterable[str]) -> bool:
    """Whether all addresses "host:port" are loopback ones, which no other machine reaches."""
    return all(_is_loopback(address.rpartition(":")[0]) for address in addresses)


@contextlib.contextmanager
def on_loopback(host: str = "localhost") -> Iterator[None]:
    """Servers of TensorFlow that start inside listen on one address in place of every one.

    Where the system does not allow that, they listen everywhere; see `reached_by_others`.

    Args:
      host: a loopback one, as others name it; of "localhost" 127.0.0.1 is meant.
    """
    address = _address(host)
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(SlotsUnknownError):
            stack.enter_context(calling("bind", _in_place_of_bind(address), within=_LIBRARY))
        yield


def reached_by_others(port: int) -> bool:
    """Whether this process listens at a port on an address that other machines may reach."""
    return any(not _is_loopback(host) for host in _listening(port))


def _is_loopback(host: str) -> bool:
    try:
        return _address(host).is_loopback
    except ValueError:
        return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that a host names by itself; a ValueError for a name that must be looked up."""
    if host.lower() == "localhost":
        host = "127.0.0.1"
    address = ipaddress.ip_address(host.strip("[]"))
    return getattr(address, "ipv4_mapped", None) or address


def _in_place_of_bind(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Any:
    """The system's `bind` with one address in place of every one."""
    libc = ctypes.CDLL(None, use_errno=True)
    packed = address.packed
    instead = {len(packed): packed, 16: packed if len(packed) == 16 else _MAPPED + packed}

    def bind(descriptor: int, place: int, length: int) -> int:
        given = bytearray(ctypes.string_at(place, length))
        (family,) = _FAMILY.unpack_from(given)
        at, everywhere = _EVERYWHERE.get(family, (0, b""))
        end = at + len(everywhere)
        if everywhere and given[at:end] == everywhere:
            given[at:end] = instead.get(len(everywhere), everywhere)
        return int(libc.bind(descriptor, (ctypes.c_char * length).from_buffer(given), length))

    return _BIND(bind)


def _listening(port: int) -> Iterator[str]:
    """The addresses at which sockets of this process listen at a port."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{entry}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(entry))) as held:
                    yield from _place_of(held, port)


def _place_of(held: socket.socket, port: int) -> Iterator[str]:
    """The address of a socket, if it listens at the port."""
    name = held.getsockname()
    listens = held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    if listens and isinstance(name, tuple) and name[1] == port:
        yield name[0]

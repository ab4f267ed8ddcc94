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
# By family: where the address begins in a sockaddr, every address, and the one in its place. A
# socket of version 6 also serves version 4, as TensorFlow's does, and listens for that alone then.
_PLACES = {
    socket.AF_INET: (4, bytes(4), socket.inet_pton(socket.AF_INET, "127.0.0.1")),
    socket.AF_INET6: (8, bytes(16), socket.inet_pton(socket.AF_INET6, "::ffff:127.0.0.1")),
}
_ARGUMENTS = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint32)
_BIND = ctypes.CFUNCTYPE(ctypes.c_int, *_ARGUMENTS, use_errno=True)


def is_own_machine(addresses: Iterable[str]) -> bool:
    """Whether all addresses "host:port" are loopback ones, which no other machine reaches."""
    return all(_is_loopback(address.rpartition(":")[0]) for address in addresses)


@contextlib.contextmanager
def on_loopback() -> Iterator[None]:
    """Servers of TensorFlow that start inside listen on 127.0.0.1 in place of every address.

    Where the system does not allow that, they listen everywhere; see `reached_by_others`.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(SlotsUnknownError):
            stack.enter_context(calling("bind", _in_place_of_bind(), within=_LIBRARY))
        yield


def reached_by_others(port: int) -> bool:
    """Whether this process listens at a port on an address that other machines may reach."""
    return any(not _is_loopback(host) for host in _listening(port))


def _is_loopback(host: str) -> bool:
    if host.lower() in ("localhost", "ip6-localhost"):
        return True
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host.strip("[]"))
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    return False


def _in_place_of_bind() -> Any:
    """The system's `bind` with a loopback address in place of every address."""
    libc = ctypes.CDLL(None, use_errno=True)

    def bind(descriptor: int, address: int, length: int) -> int:
        given = bytearray(ctypes.string_at(address, length))
        (family,) = _FAMILY.unpack_from(given)
        at, everywhere, loopback = _PLACES.get(family, (0, b"", b""))
        if at and given[at : at + len(everywhere)] == everywhere:
            given[at : at + len(everywhere)] = loopback
        return int(libc.bind(descriptor, (ctypes.c_char * length).from_buffer(given), length))

    return _BIND(bind)


def _listening(port: int) -> Iterator[str]:
    """The addresses at which sockets of this process listen at a port."""
    for entry in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(entry))) as held:
            if held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                name = held.getsockname()
                if isinstance(name, tuple) and name[1] == port:
                    yield name[0]

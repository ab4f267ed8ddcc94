"""Which clusters are of one machine, and what takes the place of the system's `bind`."""

from __future__ import annotations

import ctypes
import socket

import pytest

from workbench.experiments.cluster.linked_calls import SlotsUnknownError, calling
from workbench.experiments.cluster.own_machine import is_own_machine, reached_by_others


@pytest.mark.parametrize(
    ("addresses", "own"),
    [
        (["localhost:1", "LOCALHOST:2"], True),
        (["127.0.0.1:1", "127.1.2.3:2", "[::1]:3", "::ffff:127.0.0.1:4"], True),
        (["localhost:1", "host2:2"], False),
        (["0.0.0.0:1"], False),
        (["[::]:1"], False),
        (["10.0.0.7:1"], False),
    ],
)
def test_a_cluster_of_one_machine_has_loopback_addresses_alone(addresses, own):
    assert is_own_machine(addresses) is own


@pytest.mark.parametrize(("host", "others"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_who_reaches_a_port_is_read_from_the_sockets(host, others):
    with socket.socket() as listening:
        listening.bind((host, 0))
        listening.listen()
        assert reached_by_others(listening.getsockname()[1]) is others


def test_a_function_that_no_library_calls_is_not_replaced():
    nothing = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
    message = r"no library libnone… that is loaded calls bind"
    with (
        pytest.raises(SlotsUnknownError, match=message),
        calling("bind", nothing, within="libnone"),
    ):
        pass

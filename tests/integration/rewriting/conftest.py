"""Fixtures of these tests."""

from __future__ import annotations

import pytest
import tensorflow as tf

from workbench import _native

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def library():
    return _native.library()


@pytest.fixture(params=["direct", "server"])
def target(request: pytest.FixtureRequest) -> str:
    """Of a direct session, and of one on a server in this process."""
    return "" if request.param == "direct" else v1.train.Server.create_local_server().target

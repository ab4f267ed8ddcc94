"""Executor policies beside stock TensorFlow: the measure of all tests of executors.

`same`: a graph runs nine times in a session of stock TensorFlow and in one of a policy, and every
fetch of every step must be equal to the bit. The cost model learns in the steps 2 to 4 and
schedules by what it learned from step 5 on, so both are compared. With EXECUTOR_TESTS_ON=server in
the environment, both sessions are on a server of this process.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

import workbench as wb

v1 = tf.compat.v1
POLICIES = ("normal", "inline", "cost_model")
STEPS = 9
START, STOP = 2, 5
# Numbers of the process: of datasets, queues and functions made so far.
COUNTED = re.compile(r"(?<=Dataset:)\d+|(?<=')_\d+(?=_)|(?<=Op:__inference_)\w+")


def config_of(policy: str, config: v1.ConfigProto | None = None) -> v1.ConfigProto:
    """A session's config of a policy; "stock" keeps TensorFlow's executor."""
    config = config or v1.ConfigProto()
    if policy == "stock":
        return config
    return wb.executor_options(policy, start_step=START, stop_step=STOP, config=config)


def plain(**settings: Any) -> v1.ConfigProto:
    """A config under which the graph that is built is the graph that runs."""
    config = v1.ConfigProto(**settings)
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    return config


def with_threads(config: v1.ConfigProto, count: int) -> v1.ConfigProto:
    """The config with threads of its own: how many all sessions share is settled by the first.

    Stock TensorFlow's staging areas block a thread each until somebody puts.
    """
    config.inter_op_parallelism_threads = count
    config.use_per_session_threads = True
    return config


def all_optimized() -> v1.ConfigProto:
    """A config with which Grappler touches small graphs too."""
    config = v1.ConfigProto()
    config.graph_options.rewrite_options.min_graph_nodes = -1
    config.graph_options.rewrite_options.meta_optimizer_iterations = (
        rewriter_config_pb2.RewriterConfig.TWO
    )
    return config


CONFIGS = {"plain": plain, "optimized": all_optimized}


def bits(values: Any) -> list[tuple]:
    """Fetched values such that `==` compares types, shapes and every bit."""
    found = []
    for value in tf.nest.flatten(values):
        array = np.asarray(value)
        data = array.tolist() if array.dtype == object else array.tobytes()
        found.append((array.dtype.str, array.shape, data))
    return found


@functools.cache
def local_server() -> v1.train.Server:
    """A server of this process, with two CPU devices; it lasts as long as the process."""
    return v1.train.Server.create_local_server(v1.ConfigProto(device_count={"CPU": 2}))


def outcomes(
    session: v1.Session,
    fetches: Any,
    feeds: Callable[[int], dict] = lambda step: {},
    *,
    steps: int = STEPS,
    before: Any = (),
) -> list[list[tuple]]:
    session.run(before)
    return [bits(session.run(fetches, feeds(step))) for step in range(steps)]


def same(
    policy: str,
    fetches: Any,
    feeds: Callable[[int], dict] = lambda step: {},
    *,
    before: Any = (),
    config: v1.ConfigProto | None = None,
    steps: int = STEPS,
) -> list[list[tuple]]:
    """Runs the fetches under stock and under the policy; returns what both gave."""
    graph = v1.get_default_graph()
    on_server = os.environ.get("EXECUTOR_TESTS_ON") == "server"
    target = local_server().target if on_server else ""
    found = {}
    for each in ("stock", policy):
        asked = config_of(each, config)
        if on_server:
            # A server keeps its variables, and has no threads of a session's own.
            v1.Session.reset(target)
            asked.use_per_session_threads = False
        with v1.Session(target, graph=graph, config=asked) as session:
            found[each] = outcomes(session, fetches, feeds, steps=steps, before=before)
    assert found[policy] == found["stock"]
    return found["stock"]


each_config = pytest.mark.parametrize("config", CONFIGS)
each_version = pytest.mark.parametrize("version", [1, 2])


def each_policy(test: Callable[..., None]) -> Any:
    """Runs a test under every policy; under two of them it is slow, from test to test others.

    Generated graphs run under all of them, slow or not: tests/integration/executor/test_random.py.
    """
    quick = POLICIES[zlib.crc32(test.__name__.encode()) % len(POLICIES)]
    marked = [
        policy if policy == quick else pytest.param(policy, marks=pytest.mark.slow)
        for policy in POLICIES
    ]
    return pytest.mark.parametrize("policy", marked)(test)


@contextlib.contextmanager
def control_flow(version: int) -> Iterator[None]:
    """Builds conditions and loops of this version: Switch and Merge, or If and While."""
    switch = v1.enable_control_flow_v2 if version == 2 else v1.disable_control_flow_v2
    back = v1.enable_control_flow_v2 if v1.control_flow_v2_enabled() else v1.disable_control_flow_v2
    switch()
    try:
        yield
    finally:
        back()

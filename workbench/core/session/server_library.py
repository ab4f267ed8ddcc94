"""Which servers of a cluster have loaded Workbench's library, and what to write where not."""

from __future__ import annotations

import re
from collections.abc import Sequence

import tensorflow as tf

from workbench import _native
from workbench.errors import NativeError

v1 = tf.compat.v1

REMEDY = "write wb.load_library() in its program before tf.distribute.Server(…)"
_TARGET = re.compile(r"remote target (/job:[^ ]+)")


def check_servers(target: str, jobs: Sequence[str] = ("ps",)) -> None:
    """Requires that servers of a cluster have Workbench's library.

    Variables of Workbench and its lookups run where their tables are. A server without the library
    says of each only that an op is not registered.

    Args:
      target: of this process's own server, `server.target`.
      jobs: names of jobs, all tasks of which are asked; it waits until they serve.

    Raises:
      NativeError: names the tasks without it and the line to write there.
    """
    filters = [f"/job:{job}" for job in jobs]
    without = tasks_without_library(target, v1.ConfigProto(device_filters=filters))
    if without:
        raise NativeError(
            f"{', '.join(without)} of the cluster {'has' if len(without) == 1 else 'have'} not "
            f"loaded Workbench's library; {REMEDY}"
        )


def tasks_without_library(target: str, config: tf.compat.v1.ConfigProto) -> list[str]:
    """Tasks of a cluster whose process has not loaded Workbench's library.

    Args:
      target: of a server of the cluster, `server.target`.
      config: of the session: its device filters are the tasks that are asked, its cluster, options
        of calls and time limits are kept. It waits until they serve.

    Returns:
      Their names, such as "/job:ps/task:0", in order.

    Raises:
      tf.errors.OpError: a task cannot be asked.
    """
    asked = v1.ConfigProto()
    asked.CopyFrom(config)
    asked.ClearField("graph_options")
    asked.experimental.ClearField("executor_type")
    with tf.Graph().as_default(), v1.Session(target, config=asked) as session:
        # Fed, since what is constant would be computed in this process.
        ids = v1.placeholder(tf.int64, [None])
        return [_short(task) for task in _tasks(session) if not _has_library(session, task, ids)]


def _has_library(session: tf.compat.v1.Session, task: str, ids: tf.Tensor) -> bool:
    with tf.device(f"{task}/device:CPU:0"):
        probe = _native.library().workbench_unique_with_counts(ids)
    try:
        session.run(probe, {ids: [1]})
    except tf.errors.NotFoundError:
        return False
    return True


def without_library(stage: str, server: str, error: tf.errors.NotFoundError) -> NativeError:
    """What to say when a stage's buffer is on a server that does not know its ops.

    Args:
      stage: its name.
      server: the session's.
      error: of the first op that ran there.
    """
    target = _TARGET.search(error.message)
    where = _short(target[1]) if target else f"the server {server}"
    return NativeError(
        f"{where} has no stage {stage!r}: its process has not loaded Workbench's library; {REMEDY}"
    )


def _tasks(session: tf.compat.v1.Session) -> list[str]:
    """The tasks that a session reaches, "/job:ps/replica:0/task:0"."""
    return sorted({device.name.rpartition("/device:")[0] for device in session.list_devices()})


def _short(task: str) -> str:
    """As in "/job:ps/task:0", of "/job:ps/replica:0/task:0"."""
    return re.sub("/replica:[0-9]+", "", task)

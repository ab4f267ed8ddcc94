"""`tf.train` with DeepRec's names, and with sessions that take DeepRec's ConfigProto."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.compat.config import stock_config
from workbench.core.target_nodes import mark_target_node

_train = tf.compat.v1.train

__all__ = [
    "ChiefSessionCreator",
    "MonitoredTrainingSession",
    "Server",
    "SingularMonitoredSession",
    "Supervisor",
    "WorkerSessionCreator",
    "mark_target_node",
]


def MonitoredTrainingSession(*args: Any, **kwargs: Any) -> Any:  # noqa: N802 (TensorFlow's name)
    """`tf.compat.v1.train.MonitoredTrainingSession` that also takes DeepRec's ConfigProto."""
    return _with_stock_config(_train.MonitoredTrainingSession, 9, args, kwargs)


def SingularMonitoredSession(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """`tf.compat.v1.train.SingularMonitoredSession` that also takes DeepRec's ConfigProto."""
    return _with_stock_config(_train.SingularMonitoredSession, 3, args, kwargs)


def ChiefSessionCreator(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """`tf.compat.v1.train.ChiefSessionCreator` that also takes DeepRec's ConfigProto."""
    return _with_stock_config(_train.ChiefSessionCreator, 2, args, kwargs)


def WorkerSessionCreator(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """`tf.compat.v1.train.WorkerSessionCreator` that also takes DeepRec's ConfigProto."""
    return _with_stock_config(_train.WorkerSessionCreator, 2, args, kwargs)


class Server(tf.compat.v1.train.Server):
    """`tf.compat.v1.train.Server` that also takes DeepRec's ConfigProto."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _with_stock_config(super().__init__, 4, args, kwargs)


class Supervisor(tf.compat.v1.train.Supervisor):
    """`tf.compat.v1.train.Supervisor` whose sessions also take DeepRec's ConfigProto."""

    def prepare_or_wait_for_session(
        self, master: str = "", config: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """As in TensorFlow; `managed_session` comes through here too."""
        return super().prepare_or_wait_for_session(master, stock_config(config), *args, **kwargs)


def _with_stock_config(
    build: Callable[..., Any], position: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Calls `build` with its `config`, given by keyword or at `position`, translated."""
    if "config" in kwargs:
        kwargs = {**kwargs, "config": stock_config(kwargs["config"])}
    elif len(args) > position:
        args = (*args[:position], stock_config(args[position]), *args[position + 1 :])
    return build(*args, **kwargs)

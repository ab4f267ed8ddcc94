"""`tf.train` with DeepRec's names, and with sessions that take DeepRec's ConfigProto.

Its optimizers also train EmbeddingVariables.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from workbench.compat.config import ConfigProto, stock_config, wished_config
from workbench.core.executor.policy import warn_of_servers
from workbench.core.tf_graph.target_nodes import mark_target_node
from workbench.ops.embedding_variable.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
)

_train = tf.compat.v1.train

__all__ = [
    "AdagradOptimizer",
    "AdamOptimizer",
    "ChiefSessionCreator",
    "FtrlOptimizer",
    "GradientDescentOptimizer",
    "MonitoredTrainingSession",
    "Server",
    "SingularMonitoredSession",
    "Supervisor",
    "WorkerSessionCreator",
    "mark_target_node",
]


def MonitoredTrainingSession(*args: Any, **kwargs: Any) -> Any:  # noqa: N802 (TensorFlow's name)
    """`tf.compat.v1.train.MonitoredTrainingSession` that also takes DeepRec's ConfigProto."""
    return _planned_when_final(_train.MonitoredTrainingSession, args, kwargs)


def SingularMonitoredSession(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """`tf.compat.v1.train.SingularMonitoredSession` that also takes DeepRec's ConfigProto."""
    return _planned_when_final(_train.SingularMonitoredSession, args, kwargs)


def ChiefSessionCreator(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """`tf.compat.v1.train.ChiefSessionCreator` that also takes DeepRec's ConfigProto."""
    return _planned_when_final(_train.ChiefSessionCreator, args, kwargs)


def WorkerSessionCreator(*args: Any, **kwargs: Any) -> Any:  # noqa: N802
    """`tf.compat.v1.train.WorkerSessionCreator` that also takes DeepRec's ConfigProto."""
    return _planned_when_final(_train.WorkerSessionCreator, args, kwargs)


class Server(tf.compat.v1.train.Server):
    """`tf.compat.v1.train.Server` that also takes DeepRec's ConfigProto."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = _arguments(_train.Server.__init__, (self, *args), kwargs)
        given["config"] = stock_config(given.get("config"))
        given.pop("self")
        super().__init__(**given)


class Supervisor(tf.compat.v1.train.Supervisor):
    """`tf.compat.v1.train.Supervisor` whose sessions also take DeepRec's ConfigProto."""

    def prepare_or_wait_for_session(
        self, master: str = "", config: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        """As in TensorFlow; `managed_session` comes through here too."""
        stock = stock_config(config, tf.compat.v1.get_default_graph(), master)
        warn_of_servers(master, stock)
        return super().prepare_or_wait_for_session(master, stock, *args, **kwargs)


def _planned_when_final(
    build: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Calls `build` with its `config` translated.

    SmartStage needs the finished graph, which a scaffold makes just before it hands the config to
    a new session: the plan is put into the config there.
    """
    given = _arguments(build, args, kwargs)
    config = wished_config(given.get("config"))
    if isinstance(config, ConfigProto):
        master = given.get("master")
        given["config"] = config.to_stock(target=master)
        if config.smart_stage():
            scaffold = given.get("scaffold") or _train.Scaffold()
            given["scaffold"] = _planning(scaffold, config, given["config"], master)
    warn_of_servers(given.get("master"), given.get("config"))
    return build(**given)


def _planning(scaffold: Any, wished: ConfigProto, stock: Any, master: Any) -> Any:
    """The scaffold, which from now on plans for `stock` when it has finished the graph."""
    plain = getattr(scaffold.finalize, "plain", scaffold.finalize)

    def finalize() -> Any:
        finished = plain()
        stock.CopyFrom(wished.to_stock(tf.compat.v1.get_default_graph(), master))
        return finished

    finalize.plain = plain  # type: ignore[attr-defined]
    scaffold.finalize = finalize
    return scaffold


def _arguments(
    build: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The given arguments by name; a call that does not fit fails as the callee would."""
    return dict(inspect.signature(build).bind(*args, **kwargs).arguments)

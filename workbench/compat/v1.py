"""`import workbench.compat.v1 as tf`: tf.compat.v1, and DeepRec's names beside it.

Everything that is not named here is handed through to `tf.compat.v1`. As with DeepRec, which is a
TensorFlow 1.15, importing this module switches the process to graph mode with v1 behavior, so
import it before building anything.
"""

from __future__ import annotations

from typing import Any

import tensorflow as _tensorflow

from workbench.compat import contrib
from workbench.compat import nn as _nn
from workbench.compat import training as _training
from workbench.compat.config import ConfigProto, SessionStageSubgraphThreadPool, stock_config
from workbench.compat.executor_policy import ExecutorPolicy
from workbench.compat.overlay import Overlay as _Overlay
from workbench.compat.smart_stage import SmartStageOptions
from workbench.compat.staging import prefetch_join, staged
from workbench.core.executor.policy import warn_of_servers
from workbench.core.session.prefetch_hook import make_prefetch_hook
from workbench.ops.embedding_variable.variable import (
    CBFFilter,
    CounterFilter,
    EmbeddingVariable,
    EmbeddingVariableOption,
    GlobalStepEvict,
    InitializerOption,
    L2WeightEvict,
    StorageOption,
    get_embedding_variable,
)
from workbench.ops.feature_column import columns as _feature_column
from workbench.ops.lookup.fusion import fused_embeddings

_v1 = _tensorflow.compat.v1
_v1.disable_v2_behavior()

__all__ = [
    "CBFFilter",
    "ConfigProto",
    "CounterFilter",
    "EmbeddingVariable",
    "EmbeddingVariableOption",
    "ExecutorPolicy",
    "GlobalStepEvict",
    "InitializerOption",
    "InteractiveSession",
    "L2WeightEvict",
    "Session",
    "SessionStageSubgraphThreadPool",
    "SmartStageOptions",
    "StorageOption",
    "contrib",
    "feature_column",
    "fused_embeddings",
    "get_embedding_variable",
    "make_prefetch_hook",
    "nn",
    "prefetch_join",
    "staged",
    "train",
]

feature_column = _Overlay(_v1.feature_column, _feature_column)
nn = _Overlay(_v1.nn, _nn)
train = _Overlay(_v1.train, _training)


class Session(_tensorflow.compat.v1.Session):
    """`tf.compat.v1.Session` that also takes this module's ConfigProto."""

    # TensorFlow's __del__ looks at it, also where no plan could be made.
    _session = None

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        stock = stock_config(config, graph or _v1.get_default_graph(), target)
        warn_of_servers(target, stock)
        super().__init__(target, graph, stock)


class InteractiveSession(_tensorflow.compat.v1.InteractiveSession):
    """`tf.compat.v1.InteractiveSession` that also takes this module's ConfigProto."""

    _session = None

    def __init__(self, target: str = "", graph: Any = None, config: Any = None) -> None:
        stock = stock_config(config, graph or _v1.get_default_graph(), target)
        warn_of_servers(target, stock)
        super().__init__(target, graph, stock)


def __getattr__(name: str) -> Any:
    return getattr(_v1, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_v1)})

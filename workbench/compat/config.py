"""A ConfigProto that takes DeepRec's fields, and its translation for stock TensorFlow.

Stock protos know none of DeepRec's fields and cannot be extended, so this wraps one: stock fields
go to the stock message, DeepRec's are kept beside it. A field that nothing implements yet is
refused by name where it is set; setting it to its default is no wish and passes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from workbench.compat.executor_policy import (
    ExecutorPolicy,
    policy_of,
    policy_of_environment,
    set_executor_type,
)
from workbench.compat.smart_stage import SmartStageField, wishes, with_smart_stage
from workbench.compat.streams import Streams, add_streams
from workbench.core.options import SmartStageOptions, ThreadPoolOptions
from workbench.core.session.running.thread_pool import add_stage_pools
from workbench.errors import OptionError, UnsupportedError

_StockConfig = tf.compat.v1.ConfigProto

# DeepRec's fields that have no implementation behind them yet, by the message that holds them.
_REFUSED: dict[str, frozenset[str]] = {
    "ConfigProto.graph_options.optimizer_options": frozenset(
        {
            "async_embedding_options",
            "device_placement_optimization",
            "do_async_embedding",
            "do_op_fusion",
            "embedding_layer_device_placement_optimization",
            "micro_batch_num",
            "stage_subgraph_on_cpu",
        }
    ),
}
# DeepRec's fields that hold a message, which is copied into.
_MESSAGES = ("smart_stage_options", "multi_stream_opts")
_OURS = {
    **{
        f"ConfigProto.graph_options.optimizer_options.{name}": "smart_stage"
        for name in ("do_smart_stage", "do_smart_stage_gpu", "smart_stage_options")
    },
    "ConfigProto.graph_options.optimizer_options.stage_multi_stream": "streams",
    "ConfigProto.graph_options.rewrite_options.use_multi_stream": "streams",
    "ConfigProto.graph_options.rewrite_options.multi_stream_opts": "streams",
}
# Stock messages on the way to DeepRec's fields, which must be handed out wrapped.
_WRAPPED = frozenset(
    {
        "ConfigProto.graph_options",
        "ConfigProto.graph_options.optimizer_options",
        "ConfigProto.graph_options.rewrite_options",
    }
)


class _Refused:
    """Stands for a message field that is refused: reading is harmless, setting is not."""

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    def __setattr__(self, name: str, value: Any) -> None:
        if value:
            _refuse(f"{self._path}.{name}", value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Refused(f"{self._path}.{name}")

    def __bool__(self) -> bool:
        return False


class _SmartStage:
    """DeepRec's switches of SmartStage, which a stock ConfigProto lacks."""

    def __init__(self) -> None:
        self.do_smart_stage = False
        self.do_smart_stage_gpu = False
        self.smart_stage_options = SmartStageField()


class _Ours:
    """The values of DeepRec's fields that a stock ConfigProto lacks."""

    def __init__(self) -> None:
        self.smart_stage = _SmartStage()
        self.streams = Streams()


class _Message:
    """A stock message, with DeepRec's fields of the same message beside it."""

    def __init__(self, message: Any, path: str, ours: _Ours) -> None:
        object.__setattr__(self, "_message", message)
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_ours", ours)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        path = f"{self._path}.{name}"
        if name in _REFUSED.get(self._path, ()):
            return _Refused(path)
        if path in _OURS:
            return getattr(getattr(self._ours, _OURS[path]), name)
        value = getattr(self._message, name)
        return _Message(value, path, self._ours) if path in _WRAPPED else value

    def __setattr__(self, name: str, value: Any) -> None:
        path = f"{self._path}.{name}"
        if path in _OURS:
            self._set_ours(getattr(self._ours, _OURS[path]), name, value)
        elif name not in _REFUSED.get(self._path, ()):
            setattr(self._message, name, value)
        elif value:
            _refuse(path, value)

    def _set_ours(self, fields: Any, name: str, value: Any) -> None:
        if name in _MESSAGES:
            getattr(fields, name).CopyFrom(value)
        elif isinstance(value, (bool, int)):
            # RewriterConfig.OFF is 2.
            setattr(fields, name, value if name == "use_multi_stream" else bool(value))
        else:
            raise TypeError(f"{self._path}.{name} is {value!r}; expected a bool")

    def __repr__(self) -> str:
        return repr(self._message)


class SessionStageSubgraphThreadPool:
    """One entry of `session_stage_subgraph_thread_pool`; its fields may be set one by one."""

    __slots__ = ("global_name", "inter_op_threads_num", "intra_op_threads_num")

    def __init__(
        self,
        inter_op_threads_num: int = 0,
        intra_op_threads_num: int = 0,
        global_name: str = "",
    ) -> None:
        self.inter_op_threads_num = inter_op_threads_num
        self.intra_op_threads_num = intra_op_threads_num
        self.global_name = global_name

    def options(self) -> ThreadPoolOptions:
        """The entry as a validated value."""
        return ThreadPoolOptions(
            inter_op_threads_num=self.inter_op_threads_num,
            intra_op_threads_num=self.intra_op_threads_num,
            global_name=self.global_name,
        )


class _Pools:
    """The repeated field `session_stage_subgraph_thread_pool`."""

    def __init__(self) -> None:
        self._pools: list[SessionStageSubgraphThreadPool] = []

    def add(self, **fields: Any) -> SessionStageSubgraphThreadPool:
        """Appends a pool and returns it."""
        self._pools.append(SessionStageSubgraphThreadPool(**fields))
        return self._pools[-1]

    def __getitem__(self, index: int) -> SessionStageSubgraphThreadPool:
        return self._pools[index]

    def __delitem__(self, index: int) -> None:
        del self._pools[index]

    def __len__(self) -> int:
        return len(self._pools)

    def __iter__(self) -> Iterator[SessionStageSubgraphThreadPool]:
        return iter(self._pools)


class ConfigProto(_Message):
    """`tf.compat.v1.ConfigProto` and DeepRec's fields.

    Sessions made through `workbench.compat.v1` translate it; `to_stock()` does so by hand.

    Raises:
      OptionError: executor_policy is set to what is no policy.
      UnsupportedError: a DeepRec field is set that nothing implements yet.
      AttributeError, TypeError: as the stock message does for what neither knows.
    """

    def __init__(self, **fields: Any) -> None:
        super().__init__(_StockConfig(), "ConfigProto", _Ours())
        object.__setattr__(self, "session_stage_subgraph_thread_pool", _Pools())
        object.__setattr__(self, "_executor_policy", None)
        stock = {}
        for name, value in fields.items():
            if name == "executor_policy":
                setattr(self, name, value)
            elif name == "session_stage_subgraph_thread_pool":
                for pool in value:
                    self.session_stage_subgraph_thread_pool._pools.append(pool)
            else:
                stock[name] = value._message if isinstance(value, _Message) else value
        self._message.MergeFrom(_StockConfig(**stock))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "session_stage_subgraph_thread_pool":
            raise OptionError(
                f"{name} is a repeated field: use .add() instead of assigning {value!r}"
            )
        if name == "executor_policy":
            object.__setattr__(self, "_executor_policy", policy_of(value))
        else:
            super().__setattr__(name, value)

    @property
    def executor_policy(self) -> ExecutorPolicy:
        """Which executor runs the session's steps; normal where it is not set."""
        policy: ExecutorPolicy | None = vars(self)["_executor_policy"]
        return ExecutorPolicy.USE_NORMAL_EXECUTOR if policy is None else policy

    def __deepcopy__(self, memo: dict[int, Any]) -> ConfigProto:
        clone = ConfigProto()
        clone.CopyFrom(self)
        return clone

    def CopyFrom(self, other: Any) -> None:  # noqa: N802 (protobuf's name)
        """Becomes a copy of another ConfigProto, stock or of this class."""
        if isinstance(other, ConfigProto):
            self._message.CopyFrom(other._message)
            pools = copy.deepcopy(other.session_stage_subgraph_thread_pool._pools)
            vars(self._ours).update(copy.deepcopy(vars(other._ours)))
            policy = vars(other)["_executor_policy"]
        else:
            self._message.CopyFrom(other)
            pools, policy = [], None
            vars(self._ours).update(vars(_Ours()))
        object.__setattr__(self, "_executor_policy", policy)
        self.session_stage_subgraph_thread_pool._pools[:] = pools

    def to_stock(self, graph: Any = None, target: Any = "") -> Any:
        """A new stock ConfigProto that asks for the same.

        Args:
          graph: the finished graph that sessions will run; None leaves SmartStage out.
          target: of these sessions; a server refuses configs with thread pools, so they are left
            out for one, and stages that ask for them warn.

        Raises:
          OptionError: executor_policy and the stock field executor_type differ, or an environment
            variable of DeepRec's executors has a value that it cannot have, or
            the GPU's memory cannot be split into streams.
          PlanError: SmartStage is on, and the graph has several inputs.
        """
        config = _StockConfig()
        config.CopyFrom(self._message)
        set_executor_type(config, vars(self)["_executor_policy"])
        pools = [pool.options() for pool in self.session_stage_subgraph_thread_pool]
        if not target:
            add_stage_pools(config, pools)
            add_streams(config, self._ours.streams)
        return with_smart_stage(config, self.smart_stage(), graph)

    def smart_stage(self) -> SmartStageOptions | None:
        """The wished smart stage, None where it is off."""
        stage = self._ours.smart_stage
        return wishes(stage.do_smart_stage, stage.do_smart_stage_gpu, stage.smart_stage_options)


def stock_config(config: Any, graph: Any = None, target: Any = "") -> Any:
    """`config` as stock TensorFlow takes it: translated if it is ours, else as it is.

    Args:
      config: any ConfigProto, or None.
      graph: the finished graph that sessions will run, for SmartStage.
      target: of these sessions.
    """
    wished = wished_config(config)
    return wished.to_stock(graph, target) if isinstance(wished, ConfigProto) else wished


def wished_config(config: Any) -> Any:
    """`config`, or an empty ConfigProto where there is none and the environment wishes something.

    Raises:
      OptionError: one of DeepRec's environment variables has a value that it cannot have.
    """
    if config is None and policy_of_environment() is not None:
        return ConfigProto()
    return config


def _refuse(path: str, value: Any) -> None:
    raise UnsupportedError(
        f"{path} = {value!r}: DeepRec has this field, but nothing implements it here yet; "
        "remove the line to run without it"
    )

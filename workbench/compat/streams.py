"""DeepRec's switches of GPU streams: each stream is a logical device of the first GPU."""

from __future__ import annotations

import dataclasses
import logging
import os
import subprocess
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

from workbench.core.options import require_at_least
from workbench.errors import OptionError

_LOG = logging.getLogger("workbench")
_warned: set[str] = set()
# Shares of the GPU's memory: what stays free beside TensorFlow, what each stream of stages has, and
# what these have in all.
_FREE, _OF_A_STREAM, _OF_STREAMS = 0.1, 0.1, 0.5
_BY_HAND = "config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[14_000, 2_000])"


class MultiStreamOpts:
    """The message field `multi_stream_opts` of a ConfigProto's rewrite options."""

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = 1

    @property
    def multi_stream_num(self) -> int:
        """How many streams the GPU has, that of the step among them."""
        return self._number

    @multi_stream_num.setter
    def multi_stream_num(self, number: int) -> None:
        require_at_least("multi_stream_opts.multi_stream_num", number, 1)
        self._number = number

    def CopyFrom(self, other: Any) -> None:  # noqa: N802 (protobuf's name)
        """Takes the number over."""
        self.multi_stream_num = other.multi_stream_num


@dataclasses.dataclass
class Streams:
    """What a ConfigProto asks for.

    Attributes:
      use_multi_stream: a bool, or one of RewriterConfig's ON, OFF, DEFAULT.
      multi_stream_opts: has the number of streams.
      stage_multi_stream: whether stages may have streams of their own.
    """

    use_multi_stream: bool | int = False
    multi_stream_opts: MultiStreamOpts = dataclasses.field(default_factory=MultiStreamOpts)
    stage_multi_stream: bool | int = False

    @property
    def count(self) -> int:
        """How many streams the first GPU is to have; with 1 stages share that of the step."""
        on = self.use_multi_stream in (RewriterConfig.ON, RewriterConfig.AGGRESSIVE)
        return self.multi_stream_opts.multi_stream_num if on and self.stage_multi_stream else 1


def add_streams(config: Any, streams: Streams) -> None:
    """Gives the first GPU a logical device for each stream; its memory is split between them.

    The step has what the other streams leave: each of these has a tenth, all of them at most half.
    Logical devices that the config has already stay as they are. On a machine without a GPU a
    warning says that stages share the step's threads.

    Args:
      config: a stock ConfigProto, which is changed.
      streams: what is asked for.

    Raises:
      OptionError: the GPU is in use already, or how much memory it has cannot be found out.
    """
    if streams.count < 2:
        if streams.stage_multi_stream:
            _warn_once(
                "stage_multi_stream: no stage has a stream of its own before use_multi_stream is "
                "ON and multi_stream_num is 2 or more"
            )
        return
    if config.device_count.get("CPU", 1) >= streams.count:
        return  # Its logical devices stand in for a GPU's.
    if not tf.config.list_physical_devices("GPU"):
        _warn_once(
            "use_multi_stream: this machine has no GPU, so stages share the threads of the step"
        )
        return
    if config.gpu_options.experimental.virtual_devices:
        return
    if _is_in_use():
        raise OptionError(
            "use_multi_stream splits the GPU's memory, which this process has taken as a whole "
            "already; make the session before anything else runs on the GPU"
        )
    limits = split(_memory_mb(), streams.count)
    config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=limits)


def split(memory_mb: float, count: int) -> list[int]:
    """How much memory each of several streams has, in MB, that of the step first."""
    used = memory_mb * (1 - _FREE)
    each = used * min(_OF_A_STREAM, _OF_STREAMS / (count - 1))
    return [int(used - each * (count - 1)), *[int(each)] * (count - 1)]


def _is_in_use() -> bool:
    """Whether TensorFlow has initialized the GPU for eager execution."""
    from tensorflow.python.eager import context

    return context.context()._context_handle is not None


def _memory_mb() -> float:
    """The memory of the first GPU that this process sees."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    command = [
        "nvidia-smi",
        "-i",
        first,
        "--query-gpu=memory.total",
        "--format=csv,noheader,nounits",
    ]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        return float(said.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise OptionError(
            "use_multi_stream splits the GPU's memory, and nvidia-smi does not tell how much it "
            f"is; say the parts in MB: {_BY_HAND}"
        ) from error


def _warn_once(text: str) -> None:
    if text not in _warned:
        _warned.add(text)
        _LOG.warning(text)

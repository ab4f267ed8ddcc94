"""The protobuf message that a file of TensorFlow's step stats or profiler holds."""

from __future__ import annotations

import re
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError
from tensorflow.core.framework.step_stats_pb2 import StepStats
from tensorflow.core.protobuf.config_pb2 import RunMetadata
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace

from workbench.errors import TraceError, first_line

_EXPECTED = "expected RunMetadata, StepStats or an XSpace (*.xplane.pb), or Chrome trace JSON"
# The fields that a text begins with.
_TEXTS = {
    RunMetadata: r"step_stats|cost_graph|partition_graphs|function_graphs",
    StepStats: r"dev_stats",
    XSpace: r"planes|errors|warnings|hostnames",
}


def message_in(data: bytes) -> Any:
    """The message of a file, binary or text.

    Raises:
      TraceError: it is none of the three, or damaged.
    """
    for kind, fields in _TEXTS.items():
        if re.match(rf"(\s|#.*\n)*({fields})\s*[:{{<]".encode(), data):
            return _of_text(data.decode(errors="replace"), kind)
    faults = []
    for kind in _TEXTS:
        try:
            message = kind.FromString(data)
        except DecodeError as error:
            faults.append(f"{kind.__name__}: {first_line(error)}")
            continue
        if _says_something(message):
            return message
        faults.append(f"{kind.__name__}: nothing in it")
    raise TraceError(
        f"no message of TensorFlow that holds events ({'; '.join(faults)}); {_EXPECTED}"
    )


def _of_text(text: str, kind: Any) -> Any:
    try:
        return text_format.Parse(text, kind())
    except (text_format.ParseError, RecursionError) as error:
        raise TraceError(
            f"no whole {kind.__name__} in text form: {first_line(error)}; write or copy it again"
        ) from error


def _says_something(message: Any) -> bool:
    """Whether the names are there that every trace has: bytes of one kind often parse as another.

    1. Step stats name their devices. 2. An XSpace names its planes.
    """
    if isinstance(message, XSpace):
        return any(plane.name for plane in message.planes)
    stats = message.step_stats if isinstance(message, RunMetadata) else message
    return any(device.device for device in stats.dev_stats)

"""import_trace: what another tool recorded → Trace."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
from pathlib import Path
from typing import Any

from workbench.core.importing.chrome import chrome_trace
from workbench.core.importing.run_metadata import run_metadata_trace
from workbench.core.importing.trace_file import EXPECTED, TraceFile, opened
from workbench.core.importing.xspace import xspace_trace
from workbench.core.trace.trace import Trace
from workbench.errors import TraceError, one_line

_LOG = logging.getLogger("workbench")
_BOM = b"\xef\xbb\xbf"
# No text holds these, and every message of a trace does near its begin.
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_RUN_METADATA, _STEP_STATS = "tensorflow.RunMetadata", "tensorflow.StepStats"
_XSPACE = "tensorflow.profiler.XSpace"


def import_trace(source: Any, *, title: str = "") -> Trace:
    """Makes a Trace of what another tool recorded.

    Ops and calls become events, one track for each thread; spans inside each other stay, as self
    time is counted without them. Other kinds of events, and those with a fault, are counted in
    `meta.left_out` and logged once. No import has edges, so that a critical path needs a trace of
    Workbench's own tracer.

    - RunMetadata or StepStats, in a binary or a text file: a step each.
    - XSpace of `tf.profiler` (`logdir/plugins/profile/<time>/<host>.xplane.pb`): steps are what
      `tf.profiler.experimental.Trace(…, step_num=…)` and Keras mark.
    - Chrome JSON, plain or gzip: of `Trace.to_chrome`, `torch.profiler`, TensorBoard, TensorFlow's
      `timeline` and others. Steps are slices with `step_num` in their args, or of names such as
      "train 12" and "ProfilerStep#12". What `Trace.to_chrome` wrote comes back as it was. Only
      three things are missing: edges, nodes that never ran, and items of which neither put nor take
      had a begin.

    Where no step is marked, one goes from the first event to the last. Times keep their clock,
    which may count from the start of the recording.

    Args:
      source: path of a file, a protobuf message, or a list of either for several steps.
      title: name of the trace; the file's name where it is empty.

    Raises:
      TraceError: there is no such file, or it is of no known kind, damaged, or unpacks to far more
        than a trace can have. Or no event of it has all its fields. The message names them.
    """
    if isinstance(source, str | os.PathLike):
        trace = _of_file(Path(os.fspath(source)), title)
    else:
        trace = _of_messages(source, title)
    if trace.meta.left_out:
        found = ", ".join(f"{count} {what}" for what, count in trace.meta.left_out.items())
        _LOG.warning("%s: the trace leaves out %s", trace.meta.title or "import", found)
    return trace


def _of_file(path: Path, title: str) -> Trace:
    # A name may have bytes that are no text, which nothing can write.
    name = title or one_line(path.name)
    with opened(path) as file:
        try:
            if _is_json(file.head):
                trace = chrome_trace(file.read, name, lambda: file.cut)
                return trace if not title else _titled(trace, title)
            return _of_message(_message_in(file), name)
        except TraceError as error:
            said = str(error)
            if said.startswith(f"`{path}`"):
                raise
            raise TraceError(f"`{path}` is no trace: {said}") from error


def _titled(trace: Trace, title: str) -> Trace:
    return dataclasses.replace(trace, meta=dataclasses.replace(trace.meta, title=title))


def _of_messages(source: Any, title: str) -> Trace:
    if not isinstance(source, list | tuple):
        return _of_message(source, title)
    if not source:
        raise TraceError(f"an empty list holds no step; {EXPECTED}")
    messages = [
        _message_at(Path(os.fspath(each))) if isinstance(each, str | os.PathLike) else each
        for each in source
    ]
    for number, message in enumerate(messages):
        if _kind_of(message) not in (_RUN_METADATA, _STEP_STATS):
            raise TraceError(
                f"item {number} of the list is {_described(message)}; expected RunMetadata or "
                "StepStats: other traces hold all their steps, so that one is imported at a time"
            )
    return run_metadata_trace(messages, title)


def _of_message(message: Any, title: str) -> Trace:
    kind = _kind_of(message)
    if kind in (_RUN_METADATA, _STEP_STATS):
        return run_metadata_trace([message], title)
    if kind == _XSPACE:
        return xspace_trace(message, title)
    raise TraceError(f"{_described(message)} is no trace; {EXPECTED}")


def _kind_of(message: Any) -> str:
    """Full name of a protobuf message; empty for anything else."""
    return str(getattr(getattr(message, "DESCRIPTOR", None), "full_name", ""))


def _described(message: Any) -> str:
    return _kind_of(message) or f"a {type(message).__name__}"


def _message_at(path: Path) -> Any:
    with opened(path) as file:
        return _message_in(file)


def _message_in(file: TraceFile) -> Any:
    data = file.whole()
    # The messages are TensorFlow's own; Chrome JSON is read without it.
    from workbench.core.importing.messages import message_in

    return message_in(data)


def _is_json(head: bytes) -> bool:
    text = head.removeprefix(_BOM)
    return not _BINARY.search(text) and text.lstrip()[:1] in (b"{", b"[")

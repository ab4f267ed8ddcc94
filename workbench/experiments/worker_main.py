"""The child process of an experiment: builds programs, runs their steps on command.

Its arguments are the number of the pipe and the process id of the parent. It speaks one message per
command over the pipe and ends with it; nothing of it outlives the parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

from workbench.errors import OptionError, RunError, WorkbenchError
from workbench.experiments.program import Built, Program

_PR_SET_PDEATHSIG = 1
_TRACER_WARM_UP_STEPS = 3
_PACKAGE = str(Path(__file__).resolve().parents[1]) + os.sep


@dataclasses.dataclass(frozen=True, kw_only=True)
class Steps:
    """What a run of steps gave.

    Attributes:
      ends_ns: int64 [steps + 1], monotonic: start of the first step, then the end of each.
      values: what was fetched with each step, or empty.
      ended: whether the data ended before all steps were run.
    """

    ends_ns: np.ndarray
    values: np.ndarray
    ended: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failure:
    """An exception on its way to the parent.

    Attributes:
      kind: name of its class in workbench.errors, or "" when it is none of ours.
      message: one line, beginning with the user's own file and line where there is one.
      details: the whole traceback.
    """

    kind: str
    message: str
    details: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Opened:
    """What is known of a graph once its session runs.

    Attributes:
      stages: stages that the program has put in.
      has_loss, has_fingerprint: what its steps can be asked for.
      inject_prefetch: whether TensorFlow adds a prefetch by itself, in words.
      own_prefetch: whether the program's own pipeline prefetches.
      inter_op_threads, intra_op_threads: of the session; 0 is TensorFlow's default.
    """

    stages: int
    has_loss: bool
    has_fingerprint: bool
    inject_prefetch: str
    own_prefetch: bool
    inter_op_threads: int
    intra_op_threads: int


class _Session:
    """One program part, running in a MonitoredTrainingSession."""

    def __init__(self, program: Program, part: str, optimizations: Any) -> None:
        import tensorflow as tf

        from workbench.core.capture import CaptureHook
        from workbench.core.prefetch_hook import make_prefetch_hook, runners

        v1 = tf.compat.v1
        self._out_of_range = tf.errors.OutOfRangeError
        with tf.Graph().as_default() as graph:
            build = getattr(program, part)
            self._built = _require_built(build(optimizations), program, part)
            v1.train.get_or_create_global_step()
            config = self._built.config
            if hasattr(config, "to_stock"):
                config = config.to_stock()
            config = config or v1.ConfigProto()
            self._capture = CaptureHook(title=program.name)
            hooks = [*self._built.hooks, make_prefetch_hook(), self._capture]
            self.opened = Opened(
                stages=len(runners(graph)),
                has_loss=self._built.loss is not None,
                has_fingerprint=self._built.fingerprint is not None,
                inter_op_threads=config.inter_op_parallelism_threads,
                intra_op_threads=config.intra_op_parallelism_threads,
                **_pipeline_facts(graph),
            )
            self._session = v1.train.MonitoredTrainingSession(hooks=hooks, config=config)

    def run(self, steps: int, fetch: str) -> Steps:
        """Runs up to `steps` steps, fetching "loss", "fingerprint" or "nothing" with each."""
        wanted = {
            "nothing": None,
            "loss": self._built.loss,
            "fingerprint": self._built.fingerprint,
        }[fetch]
        fetches = [self._built.train_op] if wanted is None else [self._built.train_op, wanted]
        run, clock = self._session.run, time.perf_counter_ns
        ends, values = [clock()], []
        ended = False
        try:
            for _ in range(steps):
                got = run(fetches)
                ends.append(clock())
                if wanted is not None:
                    values.append(got[1])
        except self._out_of_range:
            ended = True
        return Steps(ends_ns=np.array(ends, np.int64), values=np.array(values), ended=ended)

    def trace(self, steps: int, path: str) -> str:
        """Traces `steps` steps into a Parquet file."""
        # The first steps under the tracer are not typical: they set it up. They are not kept.
        for count in (_TRACER_WARM_UP_STEPS, steps):
            self._capture.start()
            if self.run(count, "loss" if self.opened.has_loss else "nothing").ended:
                raise RunError("the data ended before the steps to trace; repeat the dataset")
            trace = self._capture.stop()
        trace.save(path)
        return path

    def close(self) -> None:
        self._session.close()


def _require_built(built: Any, program: Program, part: str) -> Built:
    if not isinstance(built, Built):
        raise OptionError(
            f"Program {program.name!r}: {part} returned {type(built).__name__}; "
            "expected workbench.experiments.program.Built(train_op=…)"
        )
    return built


def _pipeline_facts(graph: Any) -> dict[str, Any]:
    """Whether the tf.data pipelines of a graph prefetch, by themselves or by TensorFlow."""
    from tensorflow.core.framework import dataset_options_pb2

    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    datasets = [node for node in nodes if "Dataset" in node.op]
    state = "on, TensorFlow's default" if datasets else "no tf.data pipeline"
    for node in datasets:
        if node.op == "OptionsDataset":
            options = dataset_options_pb2.Options()
            options.ParseFromString(node.attr["serialized_options"].s)
            optimization = options.optimization_options
            if optimization.WhichOneof("optional_inject_prefetch"):
                state = "on" if optimization.inject_prefetch else "off"
    return {
        "inject_prefetch": state,
        "own_prefetch": any(node.op.startswith("PrefetchDataset") for node in datasets),
    }


class _Commands:
    """The commands of a parent, as methods."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._sessions: dict[str, _Session] = {}

    def open(self, session: str, part: str, optimizations: Any) -> Opened:
        """Builds a part of the program and starts its session."""
        self._sessions[session] = _Session(self._program, part, optimizations)
        return self._sessions[session].opened

    def run(self, session: str, steps: int, fetch: str = "nothing") -> Steps:
        """Runs steps."""
        return self._sessions[session].run(steps, fetch)

    def block(self, session: str, steps: int) -> Steps:
        """Runs the steps of a measured block, then waits until work ahead has settled."""
        fetch = "loss" if self._sessions[session].opened.has_loss else "nothing"
        measured = self._sessions[session].run(steps, fetch)
        _settle()
        return dataclasses.replace(measured, values=np.empty(0))

    def trace(self, session: str, steps: int, path: str) -> str:
        """Traces steps into a file."""
        return self._sessions[session].trace(steps, path)

    def close(self, session: str) -> None:
        """Ends a session."""
        self._sessions.pop(session).close()

    def close_all(self) -> None:
        """Ends all sessions."""
        for name in list(self._sessions):
            self.close(name)


def _settle() -> None:
    """Waits, half a second at most, until this process has no more work of its own.

    A stage fills its buffer after the last step; the next block belongs to another process.
    """
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        before = time.process_time()
        time.sleep(0.02)
        if time.process_time() - before < 0.002:
            return


def main() -> None:
    """Serves a parent until it says stop or is gone."""
    connection = Connection(int(sys.argv[1]))
    _end_with_parent(int(sys.argv[2]))
    # What the user's code prints must not end among the parent's own output.
    os.dup2(2, 1)
    commands: _Commands | None = None
    while True:
        try:
            name, arguments = cloudpickle.loads(connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)
        except Exception as error:  # a program that cannot be unpickled here
            connection.send_bytes(cloudpickle.dumps(_failure(error)))
            continue
        try:
            if name == "start":
                import_tensorflow()
                commands = _Commands(cloudpickle.loads(arguments["program"]))
                result: Any = None
            elif name == "stop":
                result = None
                if commands:
                    commands.close_all()
            else:
                result = getattr(commands, name)(**arguments)
        except Exception as error:
            result = _failure(error)
        connection.send_bytes(cloudpickle.dumps(result))
        if name == "stop":
            # Destructors of a half-dead TensorFlow have nothing to add.
            os._exit(0)


def _end_with_parent(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def import_tensorflow() -> None:
    """Imports TensorFlow without its words about processors and missing GPUs."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _held_back_stderr():
        import tensorflow as tf

        # On a machine without a GPU, the first look for one complains.
        tf.config.list_physical_devices()
    # Deprecations of graph-mode names are no news to who runs them.
    tf.get_logger().setLevel("ERROR")


@contextlib.contextmanager
def _held_back_stderr() -> Iterator[None]:
    """Keeps what is written to stderr to itself, unless the block fails."""
    kept = os.dup(2)
    with tempfile.TemporaryFile() as words:
        os.dup2(words.fileno(), 2)
        try:
            yield
        except BaseException:
            words.seek(0)
            os.write(kept, words.read())
            raise
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _failure(error: BaseException) -> Failure:
    kind = type(error).__name__ if isinstance(error, WorkbenchError) else ""
    place = "" if kind else _place(error)
    text = getattr(error, "message", None) or str(error)
    first = str(text).strip().splitlines()[0] if str(text).strip() else ""
    said = first if kind else f"{type(error).__name__}: {first}".rstrip(": ")
    return Failure(
        kind=kind,
        message=f"{place}{said}",
        details="".join(traceback.format_exception(error)),
    )


def _place(error: BaseException) -> str:
    """The innermost line of the user's own code, "`train.py`, line 41: ", or nothing."""
    frames: list[Any] = list(traceback.extract_tb(error.__traceback__))
    # An error of an op arises in a step; what the user wrote is where the op was built.
    built = getattr(getattr(error, "op", None), "traceback", None)
    own = _own_frames(list(built or ())) or _own_frames(frames)
    if not own:
        return ""
    frame = own[-1]
    name = frame.filename
    if "ipykernel" in name or name.startswith("<ipython"):
        return f"notebook cell, line {frame.lineno}: "
    with contextlib.suppress(ValueError):
        inside = os.path.relpath(name)
        name = name if inside.startswith("..") else inside
    return f"`{name}`, line {frame.lineno}: "


def _own_frames(frames: list[Any]) -> list[Any]:
    library = os.path.dirname(os.__file__) + os.sep
    return [
        frame
        for frame in frames
        if not frame.filename.startswith(("<frozen", library, _PACKAGE))
        and "site-packages" not in frame.filename
    ]

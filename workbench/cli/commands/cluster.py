"""`workbench cluster` and `workbench cluster-demo`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.cli.answers import say, show
from workbench.cli.arguments import (
    AUTO,
    add_model,
    chosen_program,
    count,
    joined,
    seconds,
    smart_stage_options,
    stage_options,
)
from workbench.cli.commands.cluster_trace import require_new_traces, show_cluster_traces
from workbench.cli.signals import loaded
from workbench.errors import OptionError

if TYPE_CHECKING:
    from workbench.experiments.cluster.worker_training import TaskResult

_STEPS = 200
_CHECKPOINT_S = 600.0


def add_cluster(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    cluster = commands.add_parser(
        "cluster",
        help="run this host's task of a TensorFlow cluster, as TF_CONFIG says",
        description="Run the task that TF_CONFIG names: a parameter server, which serves until\n"
        "all workers have ended, or a worker, which trains a program. Start the same command on\n"
        "every host, each with its own TF_CONFIG; a model's workers read a part of the data each.",
        epilog="example:\n  TF_CONFIG='{…}' workbench cluster dlrm --toggle smart_stage "
        "--data my_clicks.tsv",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_training(cluster)
    cluster.set_defaults(run=_cluster)


def add_cluster_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    demo = commands.add_parser(
        "cluster-demo",
        help="a cluster of local processes: parameter servers and workers",
        description="Start parameter servers and workers as processes of this machine, each the\n"
        "task of `workbench cluster`, and wait until the workers have trained. With --trace, make\n"
        "one trace of all workers' and say what travels between them.",
        epilog="example:\n  workbench cluster-demo dlrm --workers 2 --toggle smart_stage",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_training(demo)
    demo.add_argument("--ps", type=count, default=1, metavar="N", help="(default 1)")
    demo.add_argument("--workers", type=count, default=2, metavar="N", help="(default 2)")
    demo.add_argument(
        "--timeout",
        type=seconds,
        default=600.0,
        metavar="TIME",
        help="after which all processes are ended (default 10min)",
    )
    demo.add_argument(
        "--restarts",
        type=count,
        default=0,
        metavar="N",
        help="start tasks that were killed again, N times in all (default 0)",
    )
    demo.set_defaults(run=_demo)


def _add_training(parser: argparse.ArgumentParser) -> None:
    add_model(parser, parser, "an optimization to switch on (none, if none is given)")
    parser.add_argument(
        "--steps",
        type=count,
        default=_STEPS,
        metavar="N",
        help=f"steps of each worker (default {_STEPS})",
    )
    parser.add_argument(
        "--sync",
        action="store_true",
        help="average the workers' gradients of each step and apply them once; the worker whose "
        "data ends first ends the training of all",
    )
    parser.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="where the chief saves, and from where tasks that are started again go on",
    )
    parser.add_argument(
        "--checkpoint-every",
        type=seconds,
        default=_CHECKPOINT_S,
        metavar="TIME",
        help="from one checkpoint to the next (default 10min)",
    )
    parser.add_argument(
        "--pack-transfers",
        action=argparse.BooleanOptionalAction,
        help="send small tensors from task to task in few messages (default: with the toggles "
        "grouped and auto_fused, and with an executor policy where all tasks have the library)",
    )
    parser.add_argument(
        "--trace",
        type=Path,
        metavar="DIR",
        help="where each worker saves a trace of 30 of its steps",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where generated data goes (default results)",
    )


def _cluster(chosen: argparse.Namespace) -> int:
    from workbench.experiments.cluster.run_task import run_task
    from workbench.experiments.cluster.task import task_from_environment
    from workbench.experiments.program.program import Program

    task = task_from_environment()
    loaded()
    program = chosen_program(chosen, chosen.out, shard=task.shard)
    if not isinstance(program, Program):
        raise OptionError(
            f"{chosen.model!r} is a step or a Keras model; expected a program that builds a graph, "
            "as parameter servers train it"
        )
    result = run_task(
        program,
        joined(
            chosen.toggle,
            stage_options(chosen),
            smart_stage_options(chosen.threads, chosen.stale_lookups),
        ),
        task=task,
        steps=chosen.steps,
        sync=chosen.sync,
        checkpoint_s=chosen.checkpoint_every,
        checkpoint=None if chosen.checkpoint is None else str(chosen.checkpoint),
        trace=None if chosen.trace is None else str(chosen.trace),
        packs=chosen.pack_transfers,
        say=say,
    )
    if result is not None:
        show(_document(result), _sentence(result))
    return 0


def _document(result: TaskResult) -> dict[str, Any]:
    return {
        "kind": "task",
        "task": result.task,
        "steps": result.steps,
        "steps_per_s": result.steps_per_s,
        "losses": list(result.losses),
        "data_ended": result.ended,
    }


def _sentence(result: TaskResult) -> str:
    losses = ""
    if result.losses:
        losses = f", loss {result.losses[0]:.4f} at first, {result.losses[-1]:.4f} at last"
    ended = "; its data ended" if result.ended else ""
    return f"{result.task}: {result.steps} steps, {result.steps_per_s:.1f} steps/s{losses}{ended}"


def _demo(chosen: argparse.Namespace) -> int:
    from workbench.experiments.cluster.local_cluster import run_local_cluster

    loaded()
    if chosen.trace is not None:
        require_new_traces(chosen.trace)
    # Data is written once, not by all tasks at a time.
    chosen_program(chosen, chosen.out)
    run_local_cluster(
        [sys.executable, "-m", "workbench", "cluster", *_again(chosen)],
        ps=chosen.ps,
        workers=chosen.workers,
        timeout_s=chosen.timeout,
        restarts=chosen.restarts,
        say=say,
    )
    if chosen.trace is not None:
        show_cluster_traces(chosen.trace)
    return 0


def _again(chosen: argparse.Namespace) -> list[str]:
    """The arguments of a task's command."""
    given: list[tuple[str, Any]] = [("--toggle", each) for each in chosen.toggle or ()]
    of_data = ("data", "generate", "rows", "batch_size")
    names = (*of_data, "threads", "capacity", "stale_lookups", "seed", "steps")
    given += [(f"--{name.replace('_', '-')}", getattr(chosen, name)) for name in names]
    given += [("--checkpoint", chosen.checkpoint), ("--out", chosen.out), ("--trace", chosen.trace)]
    given.append(("--checkpoint-every", f"{chosen.checkpoint_every}s"))
    latency = chosen.input_latency
    given.append(("--input-latency", "auto" if latency == AUTO else latency))
    texts = [str(part) for name, value in given if value is not None for part in (name, value)]
    flags = [f"--{name}" for name in ("sync", "traceback") if getattr(chosen, name)]
    if chosen.pack_transfers is not None:
        flags.append("--pack-transfers" if chosen.pack_transfers else "--no-pack-transfers")
    return [chosen.model, *texts, *flags]

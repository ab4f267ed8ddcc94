"""`workbench cluster-trace`, and what `cluster-demo --trace` does at its end."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.answers import say_wrote, show
from workbench.cli.signals import loaded
from workbench.errors import DataError, one_line
from workbench.files.atomic_file import require_writable_directory, require_writable_file

_MERGED, _CHROME = "cluster.parquet", "cluster.json"


def add_cluster_trace(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cluster-trace",
        help="make one trace of all workers' of a cluster, and say what travels",
        description="Make one trace of those that the workers of a cluster have saved with\n"
        "--trace: all tasks on one clock. Say how well the clocks are known, where a step's time\n"
        "goes, what travels between tasks, and whether a worker straggles.",
        epilog="example:\n  workbench cluster-trace traces",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("traces", type=Path, metavar="DIR", help="where the workers' traces are")
    parser.set_defaults(run=_cluster_trace, traceback=False)


def _cluster_trace(chosen: argparse.Namespace) -> int:
    loaded()
    show_cluster_traces(chosen.traces)
    return 0


def require_new_traces(directory: Path) -> None:
    """Refuses a directory that cannot be written, or has traces of another run.

    Raises:
      OutputError: it cannot be written.
      DataError: it has traces.
    """
    from workbench.experiments.cluster.trace_files import worker_traces

    require_writable_directory(directory)
    if worker_traces(directory):
        raise DataError(
            f"{one_line(str(directory))!r} has traces of workers already; name another directory, "
            "or remove them"
        )


def show_cluster_traces(directory: Path) -> None:
    """Merges the workers' traces of a directory into it, and prints what they say.

    Raises:
      DataError: it has none.
      TraceError: one cannot be read, or they do not belong together.
    """
    from workbench.core.analysis.cluster_report import cluster_report
    from workbench.core.cluster.merge import merge_traces
    from workbench.core.trace.trace import load_trace
    from workbench.experiments.cluster.trace_files import worker_traces

    files = worker_traces(directory)
    if not files:
        raise DataError(
            f"{one_line(str(directory))!r} has no worker_*.parquet; expected what workers save "
            "there with --trace, after at least 20 steps"
        )
    for name in (_MERGED, _CHROME):
        require_writable_file(directory / name)
    merged = merge_traces([load_trace(file) for file in files], title="Cluster")
    merged.save(directory / _MERGED)
    say_wrote(directory / _MERGED)
    merged.to_chrome(directory / _CHROME)
    say_wrote(directory / _CHROME)
    show(cluster_report(merged))

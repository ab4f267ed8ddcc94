"""`workbench mcp`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from workbench.cli.signals import loaded
from workbench.errors import DataError, one_line

_EXAMPLES = """examples:
  workbench mcp --folder results
  workbench mcp --folder . --allow-run

A client starts this command and speaks the Model Context Protocol with it: requests on stdin,
answers on stdout. There is no port and no network. Files are opened below --folder alone. Programs
run only with --allow-run: then a client can run any Python file below the folder.
"""


def add_mcp(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "mcp",
        help="answer an agent over the Model Context Protocol, on stdin and stdout",
        description="Answer an agent over the Model Context Protocol, on stdin and stdout.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="below which files may be opened (default: the working directory)",
    )
    parser.add_argument(
        "--allow-run", action="store_true", help="let the client run programs below the folder"
    )
    parser.set_defaults(run=_mcp, traceback=False, json=False, quiet=False)


def _mcp(chosen: argparse.Namespace) -> int:
    from workbench.cli.answers import stdout_free
    from workbench.cli.mcp.protocol import Server
    from workbench.cli.mcp.tools import WorkbenchTools

    if not chosen.folder.is_dir():
        raise DataError(f"{one_line(str(chosen.folder))!r} is no directory")
    loaded()
    tools = WorkbenchTools(chosen.folder, chosen.allow_run)
    with os.fdopen(os.dup(1), "wb") as write, stdout_free():
        Server(tools, write).serve(os.fdopen(0, "rb", closefd=False))
    return 0

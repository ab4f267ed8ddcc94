"""`workbench export`."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.cli.answers import current, say, show
from workbench.cli.signals import loaded


def add_export(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    export = commands.add_parser(
        "export",
        help="write a SavedModel anew, for TensorFlow without Workbench",
        description=(
            "Write a SavedModel anew, of stock ops alone, so that TensorFlow loads it where "
            "Workbench is not installed. A SavedModel is code that may read and write files: "
            "export only one that you trust."
        ),
        epilog="example:\n  workbench export models/ctr models/ctr_stock",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument(
        "model", type=Path, metavar="DIR", help="a SavedModel, or the folder of its versions"
    )
    export.add_argument("out", type=Path, metavar="OUT", help="the new folder; not there, or empty")
    export.add_argument(
        "--version-number",
        type=int,
        metavar="N",
        help="write OUT/N, beside other versions that OUT may have",
    )
    export.add_argument(
        "--keep-ops",
        action="store_true",
        help="keep Workbench's ops; wb.load_saved(OUT) loads the model then",
    )
    export.set_defaults(run=_export, traceback=False)


def _export(chosen: argparse.Namespace) -> int:
    from workbench.exporting.export import export

    loaded()
    result = export(
        chosen.model,
        chosen.out,
        version=chosen.version_number,
        keep_ops=chosen.keep_ops,
        progress=say,
    )
    current().wrote.append(str(result.path))
    show(result.document(), result.describe())
    return 0

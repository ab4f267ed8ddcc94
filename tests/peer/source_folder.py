"""Makes what a folder of TensorFlow's tests has beside the installed wheel importable."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def extend_packages(folder: Path) -> None:
    """Adds the folder to the packages of the installed TensorFlow, after their own modules.

    The wheel leaves out modules that tests alone import: base classes and files of test data.
    """
    import tensorflow.python  # noqa: F401

    for name, module in list(sys.modules.items()):
        paths = getattr(module, "__path__", None)
        # Namespace packages compute their paths anew.
        if not isinstance(paths, list) or not name.startswith("tensorflow.python"):
            continue
        beside = str(folder.joinpath(*name.split(".")))
        if os.path.isdir(beside) and beside not in paths:
            paths.append(beside)


def runfiles(folder: Path, scratch: Path) -> dict[str, str]:
    """Environment variables with which TensorFlow's tests find their data below the folder."""
    link = scratch / "runfiles" / "org_tensorflow" / "tensorflow"
    link.parent.mkdir(parents=True, exist_ok=True)
    if not link.is_symlink():
        link.symlink_to(folder.resolve() / "tensorflow")
    return {
        "TEST_SRCDIR": str(scratch / "runfiles"),
        "TEST_WORKSPACE": "org_tensorflow",
        "TEST_TMPDIR": str(scratch / "tmp"),
    }

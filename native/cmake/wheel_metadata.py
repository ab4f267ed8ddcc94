"""Version and requirements of a wheel, which depend on the TensorFlow that it is built against.

A provider of dynamic metadata: pyproject.toml names it, and the build backend calls it. The library
in a wheel fits the minor version of TensorFlow that it was compiled against, so the wheel requires
that one, and pip refuses or replaces any other. A source distribution names the whole range.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# The backend loads this file alone, and not the folder that it lies in.
sys.path.insert(0, str(Path(__file__).parent))
from find_tensorflow import SUPPORTED, installed_version, minor_version

sys.path.pop(0)

# Set to 1, a wheel's version tells its TensorFlow: 0.1.0+tf2.20. Wheels for several lie in one
# folder then, and pip takes the one whose requirement fits.
TAGGED = "WORKBENCH_WHEEL_NAMES_TENSORFLOW"
_VERSION_FILE = Path(__file__).parents[2] / "workbench" / "__init__.py"


class Provider:
    """What the build backend calls: `build_state` first, then `dynamic_metadata`."""

    def __init__(self) -> None:
        self._state = "wheel"

    def build_state(self, build_state: str) -> None:
        """Takes "sdist", or one of the states in which a wheel is built or described."""
        self._state = build_state

    def dynamic_wheel(self, settings: Mapping[str, Any]) -> dict[str, bool]:
        """The fields in which a wheel differs from the source distribution it is built from."""
        del settings
        return {"dependencies": True}

    def dynamic_metadata(
        self, settings: Mapping[str, Any], project: Mapping[str, Any]
    ) -> dict[str, Any]:
        """`version`, and `dependencies`: TensorFlow, and what the setting `dependencies` lists.

        Raises:
          SystemExit: a wheel is built, and the TensorFlow of this Python is none to build for.
        """
        del project
        version, tensorflow = _package_version(), SUPPORTED
        if self._state != "sdist":
            installed = installed_version()
            tensorflow = required(installed)
            if os.environ.get(TAGGED) == "1":
                version += "+tf{}.{}".format(*minor_version(installed))
        return {
            "version": version,
            "dependencies": [f"tensorflow{tensorflow}", *settings["dependencies"]],
        }


def required(installed: str) -> str:
    """The versions of TensorFlow that a library fits which was built against `installed`.

    All of the same minor version; a release candidate may still change, so it fits itself alone.
    """
    if not re.fullmatch(r"[\d.]+", installed):
        return f"=={installed}"
    major, minor = minor_version(installed)
    return f">={major}.{minor},<{major}.{minor + 1}"


def _package_version() -> str:
    found = re.search(r'^__version__ = "([^"]+)"$', _VERSION_FILE.read_text("utf-8"), re.M)
    if found is None:
        raise SystemExit(f'{_VERSION_FILE} has no line __version__ = "…"')
    return found[1]

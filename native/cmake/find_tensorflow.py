"""The TensorFlow of this Python: whether Workbench builds against it, and how it was compiled.

As a script it writes CMake's variables, one `NAME=value` a line.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys

# The minor versions that the sources build against and are tested with, here alone;
# tests/unit/package/test_wheel_metadata.py compares what pyproject.toml says.
OLDEST, NEWEST = (2, 18), (2, 22)
SUPPORTED = f">={OLDEST[0]}.{OLDEST[1]},<{NEWEST[0]}.{NEWEST[1] + 1}"


def installed_version() -> str:
    """The version as pip spells it, e.g. "2.20.0" or "2.22.0rc1"; TensorFlow isn't imported.

    Raises:
      SystemExit: there is none, or it is none of those that Workbench builds against.
    """
    if importlib.util.find_spec("tensorflow") is None:
        sys.exit(
            f"{sys.executable} has no TensorFlow; install the one to build for, such as "
            f"pip install 'tensorflow{SUPPORTED}'"
        )
    try:
        version = importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:  # Another distribution, as tensorflow-cpu.
        (name, *_) = importlib.metadata.packages_distributions()["tensorflow"]
        version = importlib.metadata.version(name)
    if not OLDEST <= minor_version(version) <= NEWEST:
        sys.exit(
            f"TensorFlow {version} is installed, and Workbench builds against {SUPPORTED}; "
            f"install one of those: pip install 'tensorflow{SUPPORTED}'"
        )
    return version


def minor_version(version: str) -> tuple[int, int]:
    """(2, 20) of "2.20.1"."""
    major, minor = re.findall(r"\d+", version)[:2]
    return int(major), int(minor)


def compiled() -> dict[str, object]:
    """How the installed TensorFlow was compiled, as its own `tf.sysconfig` tells.

    Raises:
      SystemExit: as `installed_version`; or its compile flags name no C++ standard or alignment.
    """
    version = installed_version()
    import tensorflow as tf

    flags = " ".join(tf.sysconfig.get_compile_flags())
    found = {
        "TENSORFLOW_CXX11_ABI": re.search(r"-D_GLIBCXX_USE_CXX11_ABI=(\d)", flags),
        "TENSORFLOW_CXX_STANDARD": re.search(r"-std=c\+\+(\d+)", flags),
        "TENSORFLOW_ALIGNMENT": re.search(r"-DEIGEN_MAX_ALIGN_BYTES=(\d+)", flags),
    }
    for name, match in found.items():
        if match is None:
            sys.exit(
                f"TensorFlow {version} doesn't say how it was compiled: {name} cannot be read from "
                f"tf.sysconfig.get_compile_flags(), which is {flags!r}"
            )
    return {
        "TENSORFLOW_VERSION": version,
        "TENSORFLOW_INCLUDE": tf.sysconfig.get_include(),
        "TENSORFLOW_LIBRARY": f"{tf.sysconfig.get_lib()}/libtensorflow_framework.so.2",
        **{name: match[1] for name, match in found.items() if match},
    }


if __name__ == "__main__":
    for name, value in compiled().items():
        sys.stdout.write(f"{name}={value}\n")

"""Writes "folder;version" of the TensorFlow this Python would import, without importing it."""

import importlib.metadata
import importlib.util
import sys


def main() -> None:
    spec = importlib.util.find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"{sys.executable} has no TensorFlow; install the pinned requirements first")
    sys.stdout.write(f"{spec.submodule_search_locations[0]};{_version()}")


def _version() -> str:
    try:
        return importlib.metadata.version("tensorflow")
    except importlib.metadata.PackageNotFoundError:  # Another distribution, as tensorflow-cpu.
        (name, *_) = importlib.metadata.packages_distributions()["tensorflow"]
        return importlib.metadata.version(name)


main()

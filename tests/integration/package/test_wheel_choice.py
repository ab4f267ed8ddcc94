"""Wheels for several versions of TensorFlow in one folder: which of them pip takes."""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import workbench

# Not the package's own: where that is installed as a wheel, pip has nothing to do.
NAME = "wheel_choice"
VERSION = importlib.metadata.version("tensorflow")
INSTALLED = int(VERSION.split(".")[1])

pytestmark = pytest.mark.skipif(
    "rc" in VERSION, reason="a wheel for a candidate of TensorFlow requires that one by name"
)


def write_wheel(folder: Path, minor: int) -> None:
    """One that has what pip chooses by, and nothing else."""
    version = f"{workbench.__version__}+tf2.{minor}"
    info = f"{NAME}-{version}.dist-info"
    files = {
        "METADATA": f"Metadata-Version: 2.1\nName: wheel-choice\nVersion: {version}\n"
        f"Requires-Dist: tensorflow<2.{minor + 1},>=2.{minor}\n",
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        "RECORD": "",
    }
    with zipfile.ZipFile(folder / f"{NAME}-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(f"{info}/{name}", text)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels for the TensorFlow of this Python, for the one before it and the one after."""
    folder = tmp_path_factory.mktemp("dist")
    for minor in (INSTALLED - 1, INSTALLED, INSTALLED + 1):
        write_wheel(folder, minor)
    return folder


def taken(dist: Path, *arguments: str) -> list[str]:
    """Versions of the wheels that pip would install, without any package index."""
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--dry-run", "--quiet"]
    command += ["--upgrade", "--no-index", "--find-links", str(dist), "--report", "-", *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )
    return [each["metadata"]["version"] for each in json.loads(done.stdout)["install"]]


def own(minor: int) -> list[str]:
    return [f"{workbench.__version__}+tf2.{minor}"]


def test_pip_takes_the_one_for_the_tensorflow_that_is_there(dist):
    assert taken(dist, "wheel-choice") == own(INSTALLED)


def test_pip_takes_the_one_for_the_tensorflow_that_is_named(dist):
    assert taken(dist, "wheel-choice", f"tensorflow==2.{INSTALLED}.*") == own(INSTALLED)


def test_without_requirements_pip_takes_the_newest_unless_it_is_named(dist):
    assert taken(dist, "--no-deps", "wheel-choice") == own(INSTALLED + 1)
    (version,) = own(INSTALLED)
    assert taken(dist, "--no-deps", f"wheel-choice=={version}") == [version]

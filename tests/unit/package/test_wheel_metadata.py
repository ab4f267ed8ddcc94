"""What a wheel and a source distribution require of TensorFlow, and what refuses to build."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scikit_build_core.builder._load_provider import load_provider

import workbench

HOME = Path(__file__).resolve().parents[3]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text())
(ENTRY,) = PROJECT["tool"]["dynamic-metadata"]


@pytest.fixture(scope="module")
def module() -> ModuleType:
    """The provider's module, found as the build backend finds it."""
    path = str(HOME / ENTRY["provider"]["path"])
    return load_provider(ENTRY["provider"]["module"].partition(":")[0], path)  # type: ignore[return-value]


def metadata(module: Any, state: str) -> dict[str, Any]:
    provider = module.Provider()
    provider.build_state(state)
    return provider.dynamic_metadata({"dependencies": ENTRY["dependencies"]}, {})


@pytest.fixture
def installed(module: ModuleType, monkeypatch: pytest.MonkeyPatch):
    """Says which TensorFlow is installed."""

    def install(version: str) -> None:
        monkeypatch.setattr(importlib.metadata, "version", {"tensorflow": version}.__getitem__)

    return install


@pytest.mark.parametrize(
    ("version", "required", "tag"),
    [
        ("2.18.1", ">=2.18,<2.19", "+tf2.18"),
        ("2.20.0", ">=2.20,<2.21", "+tf2.20"),
        ("2.22.0rc1", "==2.22.0rc1", "+tf2.22"),
    ],
)
@pytest.mark.parametrize("state", ["wheel", "editable", "metadata_wheel"])
def test_a_wheel_requires_what_it_is_built_for(
    module, installed, monkeypatch, version, required, tag, state
):
    installed(version)
    plain = metadata(module, state)
    assert plain["version"] == workbench.__version__
    assert plain["dependencies"] == [f"tensorflow{required}", *ENTRY["dependencies"]]
    monkeypatch.setenv(module.TAGGED, "1")
    assert metadata(module, state)["version"] == workbench.__version__ + tag


def test_a_source_distribution_fits_every_version_and_needs_none(module, monkeypatch):
    monkeypatch.setenv(module.TAGGED, "1")
    monkeypatch.setattr(importlib.metadata, "version", lambda name: pytest.fail("asked"))
    found = metadata(module, "sdist")
    assert found["version"] == workbench.__version__
    assert found["dependencies"][0] == "tensorflow>=2.18,<2.23"
    assert module.Provider().dynamic_wheel({}) == {"dependencies": True}


def test_the_build_itself_requires_the_same_versions(module):
    build = PROJECT["build-system"]["requires"]
    assert [each for each in build if "tensorflow" in each] == [f"tensorflow{module.SUPPORTED}"]


@pytest.mark.parametrize("version", ["2.17.1", "2.23.0", "3.18.0", "1.15.5"])
def test_any_other_is_refused_in_one_line(module, installed, version):
    installed(version)
    with pytest.raises(SystemExit) as ended:
        metadata(module, "wheel")
    said = str(ended.value)
    assert said.startswith(
        f"TensorFlow {version} is installed, and Workbench builds against >=2.18"
    )
    assert said.endswith("pip install 'tensorflow>=2.18,<2.23'")
    assert "\n" not in said


def test_none_at_all_is_refused_too(module, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="has no TensorFlow; install the one to build for"):
        metadata(module, "wheel")

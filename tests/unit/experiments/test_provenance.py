"""When, where and of which commit something was measured."""

from __future__ import annotations

import datetime
import platform
import subprocess
from pathlib import Path

import pytest

from workbench.experiments.comparison.provenance import provenance


def git(*arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that no git repository holds."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    home = tmp_path / "ranker"
    home.mkdir()
    monkeypatch.chdir(home)
    return home


def test_it_has_date_and_host(outside: Path) -> None:
    found = provenance()
    when = datetime.datetime.fromisoformat(found["measured"])
    assert abs((datetime.datetime.now(datetime.UTC) - when).total_seconds()) < 120
    assert found["host"] == platform.node()
    assert "project" not in found


def test_it_names_the_commit_and_says_whether_files_changed_since(outside: Path) -> None:
    git("init", "-q")
    assert "project" not in provenance()
    (outside / "model.py").write_text("a = 1\n")
    git("add", "model.py")
    git("commit", "-qm", "first")
    commit = subprocess.check_output(["git", "rev-parse", "--short=10", "HEAD"], text=True).strip()
    (outside / "notes.txt").write_text("not tracked\n")
    assert provenance()["project"] == f"ranker {commit}"
    (outside / "model.py").write_text("a = 2\n")
    assert provenance()["project"] == f"ranker {commit}, changed since"


def test_without_git_there_is_no_commit(outside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git("init", "-q")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "project" not in provenance()

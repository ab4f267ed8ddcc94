"""`workbench find-best`: what it asks for, what it prints and writes; nothing here runs a model."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders.searches import search
from workbench.cli import main
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.toggles.toggle import Toggle
from workbench.experiments.comparison.results import load_comparison
from workbench.experiments.search import find_best as find_best_module
from workbench.models.data.criteo import generate_criteo


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Runs the command on a small log; returns its exit code and what it asked for."""
    seen = SimpleNamespace(options=None)
    monkeypatch.chdir(tmp_path)

    def find_best(program, **options):
        seen.program, seen.options = program.name, options
        return search()

    monkeypatch.setattr(find_best_module, "find_best", find_best)
    data = generate_criteo(tmp_path / "clicks.tsv", rows=5)

    def ask(*arguments: str) -> Any:
        seen.code = main.main(["find-best", "dlrm", "--data", str(data), *arguments])
        return seen

    return ask


def test_it_searches_all_combinations_within_two_minutes(asked, capsys, tmp_path):
    seen = asked()
    assert seen.options.pop("command").startswith("workbench find-best dlrm --data ")
    assert (seen.code, seen.program) == (0, "dlrm")
    assert seen.options == {
        "budget": 120.0,
        "memory": None,
        "toggles": None,
        "stage": StageOptions(num_threads=2, capacity=2),
        "smart_stage": SmartStageOptions(reorder=True),
        "allow_another_training": False,
        "seed": 1,
        "progress": True,
    }
    shown = capsys.readouterr().out.replace("\u00a0", " ")
    assert "Best: smart stage + fused V1, 1.31× as fast as all off" in shown
    assert "Wrote results/report.html" in shown
    assert (tmp_path / "results/report.html").read_text("utf-8").startswith("<!DOCTYPE html>")
    assert load_comparison(tmp_path / "results/comparison").program == "dlrm"


def test_budgets_and_toggles_are_those_of_the_arguments(asked):
    seen = asked(
        *("--budget", "90s", "--memory", "8GB", "--toggle", "smart_stage"),
        *("--toggle", "fused_v2", "--out", "best"),
    )
    assert (seen.options["budget"], seen.options["memory"]) == (90.0, 8_000_000_000)
    assert seen.options["toggles"] == ["smart_stage", "fused_v2"]


def test_toggles_of_ones_own_are_searched_on_request(asked):
    seen = asked("--own", "dim=16,32", "--allow-another-training")
    assert seen.options["toggles"] == [Toggle("dim", [16, 32])]
    assert seen.options["allow_another_training"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--memory", "much"], "'much' is not a size such as 8GB"),
        (["--budget", "soon"], "'soon' is not a time such as 60s or 2min"),
        (["--toggle", "stages"], "there is no toggle 'stages'"),
    ],
)
def test_mistakes_exit_with_2(asked, capsys, arguments, said):
    with pytest.raises(SystemExit) as ended:
        asked(*arguments)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_help_says_how_it_is_searched(capsys):
    with pytest.raises(SystemExit):
        main.main(["find-best", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "slower ones are dropped early" in said and "half a GB for dlrm" in said

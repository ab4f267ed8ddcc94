"""The bench of the search: what it prints of what was found; nothing is run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.bench import bench_search
from tests.bench.bench_search import markdown, searched
from tests.bench.duel import duel
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions

STAGE = "stage (capacity 2, 2 threads)"
KNOWN = {
    "ratios": {"off": (1.0, 1.0, 1.0), "fused V2": (1.3, 1.25, 1.35), STAGE: (1.28, 1.2, 1.3)},
    "seconds": 400.0,
    "toggles": ["stage", "fused_v2"],
}


@pytest.fixture
def chosen(monkeypatch):
    def choose(label: str, ratio: float, took_s: float = 99.0):
        asked = {}

        def find_best(program, **options):
            asked.update(options)
            return SimpleNamespace(label=label, took_s=took_s, runners_up=("one",))

        def compare(program, toggles, **options):
            return SimpleNamespace(ratios=(SimpleNamespace(ratio=ratio, low=0.97, high=1.0),))

        monkeypatch.setattr(bench_search, "find_best", find_best)
        monkeypatch.setattr("tests.bench.duel.compare", compare)
        return searched("dlrm", None, KNOWN), asked

    return choose


def test_it_searches_the_same_settings_in_a_quarter_of_the_time(chosen):
    found, asked = chosen(STAGE, 0.985)
    assert asked["budget"] == 100.0 and asked["toggles"] == ["stage", "fused_v2"]
    assert (found.duel.chosen, found.duel.best, found.duel.ratio) == (STAGE, "fused V2", 0.985)
    assert (found.settings, found.raced) == (2, 2)


def test_the_best_one_has_no_rival(chosen):
    found, _ = chosen("fused V2", 0.5)
    assert found.duel.ratio == 1.0


def test_the_table_says_how_much_is_lost(chosen):
    found = [chosen(STAGE, 0.985)[0], chosen("off", 0.8)[0]]
    *_, first, second, _, last = markdown(found).splitlines()
    assert first == (
        f"| dlrm | fused V2 | 1.30 (1.25–1.35) | {STAGE} | 0.985 (0.970–1.000) | 2 in 400 s | "
        "2 in 99 s |"
    )
    assert "| off | 0.800 (" in second and "1 in 99 s" in second
    assert last == "Within 2 % of the best in 1 of 2 models."


def test_a_duel_is_measured_once(tmp_path, monkeypatch):
    asked = []

    def compare(program, toggles, **options):
        asked.append((toggles, options["baseline"]))
        return SimpleNamespace(ratios=(SimpleNamespace(ratio=0.9, low=0.8, high=1.0),))

    monkeypatch.setattr("tests.bench.duel.compare", compare)
    off, staged = Optimizations(), Optimizations(stage=StageOptions())
    kept = tmp_path / "duels.json"
    found = [duel(None, staged, off, budget_s=1, kept=kept) for _ in range(2)]
    assert found[0] == found[1] and asked == [([staged], off)]
    assert not found[0].as_good(0.02) and found[0].as_good(0.1)
    duel(None, off, staged, budget_s=1, kept=kept)
    assert len(asked) == 2

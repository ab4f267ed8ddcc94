"""The bench of the search: what it prints of what was found; nothing is run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.bench import bench_search
from tests.bench.bench_search import markdown, searched

KNOWN = {
    "ratios": {"off": (1.0, 1.0, 1.0), "fused V2": (1.3, 1.25, 1.35), "stage": (1.28, 1.2, 1.3)},
    "seconds": 400.0,
    "toggles": ["stage", "fused_v2"],
}


@pytest.fixture
def chosen(monkeypatch):
    def choose(label: str, took_s: float = 99.0):
        asked = {}

        def find_best(program, **options):
            asked.update(options)
            return SimpleNamespace(label=label, took_s=took_s, runners_up=("one",))

        monkeypatch.setattr(bench_search, "find_best", find_best)
        return searched("dlrm", None, KNOWN), asked

    return choose


def test_it_searches_the_same_settings_in_a_quarter_of_the_time(chosen):
    found, asked = chosen("stage")
    assert asked["budget"] == 100.0 and asked["toggles"] == ["stage", "fused_v2"]
    assert found.loss == pytest.approx(1 - 1.28 / 1.3)
    assert (found.settings, found.raced) == (2, 2)


def test_the_table_says_how_much_is_lost(chosen):
    found = [chosen("stage")[0], chosen("off")[0]]
    *_, first, second, _, last = markdown(found).splitlines()
    assert first == (
        "| dlrm | fused V2 | 1.30 (1.25–1.35) | stage | 1.5 % | 2 in 400 s | 2 in 99 s |"
    )
    assert "| off | 23.1 % |" in second and "1 in 99 s" in second
    assert last == "Within 2 % of the best in 1 of 2 models."

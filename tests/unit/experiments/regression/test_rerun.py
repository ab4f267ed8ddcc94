"""Whether what was found still holds."""

from __future__ import annotations

import pytest

from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.regression.rerun import measured_again
from workbench.viz.comparison.rerun_text import rerun_text


def ratio(low, high, label="stage"):
    verdict = "faster" if low > 1 else "slower" if high < 1 else "no clear difference"
    value = (low * high) ** 0.5
    return Ratio(label=label, ratio=value, low=low, high=high, verdict=verdict)


@pytest.mark.parametrize(
    ("then", "now", "standing"),
    [
        ((1.8, 1.9), (1.78, 1.92), "holds"),
        ((1.8, 1.9), (2.3, 2.4), "holds"),  # more of the same
        ((0.8, 0.85), (0.6, 0.65), "holds"),
        ((0.98, 1.02), (0.97, 1.03), "holds"),
        ((1.8, 1.9), (1.1, 1.2), "no longer"),  # faster still, by clearly less
        ((1.8, 1.9), (0.98, 1.03), "no longer"),
        ((1.05, 1.3), (0.8, 0.97), "no longer"),
        ((0.8, 0.85), (0.9, 0.95), "no longer"),
        ((0.99, 1.01), (1.2, 1.3), "no longer"),
        ((1.01, 1.2), (0.95, 1.15), "not clear"),
        ((0.95, 1.15), (1.01, 1.2), "not clear"),
        ((1.02, 1.4), (0.7, 1.6), "not clear"),
        ((0.6, 2.4), (0.2, 1.8), "not clear"),  # neither day showed anything
    ],
)
def test_a_variant_then_and_now(then, now, standing):
    (found,) = measured_again([ratio(*then)], [ratio(*now)])
    assert found.standing == standing


def test_only_what_was_measured_on_both_days():
    assert measured_again([ratio(1, 2, "a")], [ratio(1, 2, "b")]) == ()


ENVIRONMENT = {"cpu": "A", "cores": 2, "tensorflow": "2.21.0", "workbench": "0.1.0"}


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ([], "Nothing was compared: only the baseline was measured."),
        ([((1.8, 1.9), (1.8, 1.9))], "Still holds: v0."),
        ([((1.8, 1.9), (1.8, 1.9))] * 2, "Still holds: all 2 variants."),
        ([((1.8, 1.9), (1.8, 1.9)), ((1.8, 1.9), (0.9, 1.1))], "No longer holds: v1 (1 of 2)."),
        ([((1.01, 1.2), (0.95, 1.15))], "Not clear: v0 (1 of 1)."),
    ],
)
def test_the_verdict_comes_first(pairs, said):
    then = [ratio(*pair[0], f"v{i}") for i, pair in enumerate(pairs)]
    now = [ratio(*pair[1], f"v{i}") for i, pair in enumerate(pairs)]
    text = rerun_text(measured_again(then, now), ENVIRONMENT, ENVIRONMENT)
    assert text.splitlines()[0] == said
    assert "now and was" not in text


def test_what_differs_beside_the_result_is_said():
    again = measured_again([ratio(1.8, 1.9)], [ratio(1.1, 1.2)])
    text = rerun_text(again, {**ENVIRONMENT, "cores": 64, "cpu": "B\n"}, ENVIRONMENT)
    assert "cpu is 'A' now and was 'B\\n'.\ncores is 2 now and was 64." in text
    row = text.splitlines()[3].replace("\u00a0", " ").split()
    assert row == ["Stage", "1.85×", "1.80–1.90", "1.15×", "1.10–1.20", "0.62×", *row[6:]]
    assert row[-2:] == ["no", "longer"]

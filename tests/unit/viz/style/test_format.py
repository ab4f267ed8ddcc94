"""Numbers as strings, and that the browser's port makes the same ones."""

from __future__ import annotations

import random

import pytest

from tests.builders.javascript import evaluate
from workbench.viz.style import format

CASES = [
    (103_000_000, "103 ms"),
    (10_300_000, "10.3 ms"),
    (9_400_000, "9.4 ms"),
    (910_000, "0.91 ms"),
    (73_000, "73 µs"),
    (3_000, "3.0 µs"),
    (0, "0 ms"),
    (1, "1 ns"),
    (99, "99 ns"),
    (100, "0.1 µs"),
    (9_949, "9.9 µs"),
    (9_950, "10 µs"),
    (99_499, "99 µs"),
    (99_500, "0.10 ms"),
    (994_999, "0.99 ms"),
    (995_000, "1.0 ms"),
    (99_949_999, "99.9 ms"),
    (99_950_000, "100 ms"),
    (999_499_999, "999 ms"),
    (999_500_000, "1.0 s"),
    (99_950_000_000, "100 s"),
    (1_234_000_000_000, "1\u2009234 s"),
    (-2_500_000, "−2.5 ms"),
]


@pytest.mark.parametrize(("ns", "words"), CASES)
def test_duration(ns: int, words: str) -> None:
    assert format.duration(ns) == words.replace(" ", format.NBSP)


def test_duration_unknown_is_a_dash() -> None:
    assert format.duration(None) == format.duration(float("nan")) == "–"


def test_duration_of_a_mean_is_rounded_to_ns_first() -> None:
    assert format.duration(10_349_999.5) == f"10.4{format.NBSP}ms"


def test_browser_port_makes_the_same_strings() -> None:
    rng = random.Random(5)
    values = [ns for ns, _ in CASES] + [2_499_999, 2_500_000, 2_549_999, 2_550_000]
    values += [rng.randrange(10 ** rng.randrange(1, 14)) for _ in range(3000)]
    assert evaluate("value.map(duration)", values) == [format.duration(v) for v in values]
    counts = [0, 999, 1000, 250_000, -1_234_567, *values[:500]]
    assert evaluate("value.map(integer)", counts) == [format.integer(v) for v in counts]
    assert evaluate("[duration(null), duration(NaN), duration(undefined)]") == ["–"] * 3


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (format.gain(1.097), "+9.7 %"),
        (format.gain(0.65), "−35 %"),
        (format.gain(2.61), "+161 %"),
        (format.gain(None), "–"),
        (format.share(0.0931), "9.3 %"),
        (format.ratio(2.6149), "2.61×"),
        (format.ratio(float("inf")), "–"),
        (format.ratio_range(2.59, 2.634), "2.59–2.63"),
        (format.rate(41.34), "41.3 steps/s"),
        (format.rate_between(41.34, 40.93, 41.75), "41.3 ± 0.4 steps/s"),
        (format.rate_between(0.25, 0.24, 0.26), "0.25 ± 0.01 steps/s"),
        (format.rate_between(13.5, 6.1, 30.2), "13.5 (6.1–30.2) steps/s"),
        (format.rate_between(136.2, -150.7, 423.1), "136.2 (0.0–423.1) steps/s"),
        (format.rate_between(41.3, 0.0, float("inf")), "41.3 steps/s"),
        (format.interval(1e7, -18.2e6, 38.2e6, format.duration), "(0 ms–38.2 ms)"),
        (format.interval(1e7, 9.9e6, 10.1e6, format.duration, plus="±"), "±0.10 ms"),
        (format.rate(250_000.4, unit="ops/s"), "250\u2009000 ops/s"),
        (format.rate(None), "–"),
        (format.integer(250_000), "250\u2009000"),
        (format.integer(-1_000), "−1\u2009000"),
        (format.million(4_100_000), "4.1 million"),
        (format.million(250_000), "250\u2009000"),
    ],
)
def test_words(made: str, words: str) -> None:
    kept = [" ± ", "1 million", " ("]
    wanted = words
    if not any(k in words for k in kept):
        wanted = words.replace(" ", format.NBSP)
    elif " ± " in words or " (" in words:
        head, unit = words.rsplit(" ", 1)
        wanted = f"{head}{format.NBSP}{unit}"
    assert made == wanted


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1_640, "1.6 kB"),
        (181_000, "181 kB"),
        (999_600, "1.0 MB"),
        (16_200_000, "16 MB"),
        (-7_200_000, "−7.2 MB"),
        (3.2e12, "3.2 TB"),
        (5e15, "5 000 TB"),
        (None, "–"),
    ],
)
def test_sizes_are_decimal(count: float | None, words: str) -> None:
    assert format.size(count).replace(format.NBSP, " ").replace(format.THIN, " ") == words

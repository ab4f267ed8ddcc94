"""What a measurement of a served model says, shows, saves and reads."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from tests.builders.serving import block, point, serving_comparison
from workbench.core.optimizations import Optimizations
from workbench.errors import DataError, OptionError
from workbench.experiments.serving.client_limit import client_is_limit
from workbench.experiments.serving.loads import loads_of
from workbench.experiments.serving.p99_limit import P99Limit
from workbench.experiments.serving.points import Load, RateAtLimit, RateProbe
from workbench.experiments.serving.rate_search import Probed, expected_s, search_rate
from workbench.experiments.serving.receipts import receipt
from workbench.experiments.serving.results import load_serving
from workbench.experiments.serving.rounds import schedule
from workbench.experiments.serving.serve_bench import serve_bench
from workbench.experiments.serving.served_model import served
from workbench.experiments.serving.server.messages import Answers
from workbench.experiments.serving.toggles import (
    SESSIONS,
    STEPS_AT_ONCE,
    steps_at_once_of,
)
from workbench.experiments.serving.variants import serving_variants

ONE, EIGHT = Load(kind="single stream"), Load(kind="clients", clients=8)


def test_ratios_are_of_rounds():
    comparison = serving_comparison()
    rates = comparison.per_s_ratio("inline executor", EIGHT, 1)
    assert rates.interval.value == pytest.approx(2.0) and rates.verdict == "faster"
    latencies = comparison.latency_ratio("inline executor", EIGHT, 1)
    assert latencies.interval.value == pytest.approx(0.5) and latencies.verdict == "faster"
    assert comparison.per_s_ratio("off", EIGHT, 1).verdict == "no clear difference"
    assert comparison.rate_ratio("inline executor", 1) is None


def test_a_block_without_answers_has_no_ratio():
    comparison = serving_comparison()
    empty = dataclasses.replace(block(), answered=0, failed=5, percentiles_ns=())
    broken = dataclasses.replace(comparison.variants[1].points[0], blocks=(empty,) * 3)
    variant = dataclasses.replace(
        comparison.variants[1], points=(broken, comparison.variants[1].points[1])
    )
    comparison = dataclasses.replace(comparison, variants=(comparison.variants[0], variant))
    assert broken.latency is None and broken.per_s is None and broken.failed == 15
    assert comparison.per_s_ratio("inline executor", ONE, 1) is None
    assert comparison.latency_ratio("inline executor", ONE, 1) is None
    assert "–" in str(comparison)


def test_cpu_is_for_one_request():
    loaded = point(EIGHT, [1000, 1000], client_cpu_s=0.02, server_cpu_s=0.9)
    assert loaded.client_cpu_ns == pytest.approx(20_000)
    assert loaded.server_cpu_ns == pytest.approx(900_000)
    assert loaded.cores == pytest.approx(0.92)


def test_it_comes_back_from_its_file(tmp_path):
    comparison = serving_comparison()
    limited = RateAtLimit(
        rows=1,
        limit_ns=3e6,
        rates=(0.0, 500.0, 520.0),
        probes=(RateProbe(round=0, rate=400.0, p99_ns=None, kept=False),),
    )
    chosen = Optimizations(executor="inline", chosen=(SESSIONS.at(2),))
    variants = [
        dataclasses.replace(variant, rates_at_limit=(limited,)) for variant in comparison.variants
    ]
    variants[1] = dataclasses.replace(variants[1], optimizations=chosen)
    comparison = dataclasses.replace(comparison, variants=tuple(variants))
    path = comparison.save(tmp_path / "serving.json")
    back = load_serving(path)
    assert back.variants[0] == comparison.variants[0]
    assert back.variants[1].points == comparison.variants[1].points
    assert back.variants[1].optimizations["sessions"] == 2
    assert str(back) == str(comparison)
    assert back.receipts == comparison.receipts


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "else"}, "holds something else"),
        ({"format_version": 99}, "has format 99"),
        ({"variants": []}, "one or more"),
        ({"rounds": "three"}, "rounds is 'three'"),
        ({"receipts": [{"label": "x", "rows": 1, "requests": 1, "bit_equal": True}]}, "no variant"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path, change, words):
    path = serving_comparison().save(tmp_path / "serving.json")
    document = json.loads(path.read_text()) | change
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=words):
        load_serving(path)


def test_other_loads_and_numbers_out_of_range_are_refused(tmp_path):
    path = serving_comparison().save(tmp_path / "serving.json")
    document = json.loads(path.read_text())
    document["variants"][1]["points"].pop()
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match="other loads than the baseline"):
        load_serving(path)
    document = json.loads(serving_comparison().save(path).read_text())
    document["variants"][0]["points"][0]["blocks"][0]["seconds"] = -1.0
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"number -1\.0"):
        load_serving(path)
    for change in ({"environment": {"cores": "two"}}, {"environment": {"cores": -1}}):
        path.write_text(
            json.dumps(json.loads(serving_comparison().save(path).read_text()) | change)
        )
        with pytest.raises(DataError, match=r"has .* cores; expected a whole number"):
            load_serving(path)
    document = json.loads(serving_comparison().save(path).read_text())
    for variant in document["variants"]:
        variant["points"] = []
    path.write_text(json.dumps(document))
    with pytest.raises(DataError, match="has no load; expected one"):
        load_serving(path)
    with pytest.raises(DataError, match="no such file"):
        load_serving(tmp_path / "none.json")


def test_the_table_has_every_load_and_what_failed():
    comparison = serving_comparison()
    failing = dataclasses.replace(
        point(EIGHT, [1000, 1010, 990], failed=3), first_error="id 99 is out of range",
        client_is_limit=True,
    )  # fmt: skip
    first = comparison.variants[0]
    first = dataclasses.replace(first, points=(first.points[0], failing))
    text = str(dataclasses.replace(comparison, variants=(first, comparison.variants[1])))
    assert "1 client, 1 row" in text and "8 clients, 1 row" in text
    assert "9 requests of 3\u2009009 failed, first: id 99 is out of range" in text
    assert "the client is the limit" in text
    assert "2.00 (" in text and "0.50 (" in text
    assert "on 16 requests of 1 row its outputs are bit-equal" in text


def test_when_the_client_is_the_limit():
    assert not client_is_limit(EIGHT, [block(client_cpu_s=0.05, server_cpu_s=1.9)])
    assert client_is_limit(EIGHT, [block(client_cpu_s=0.5, server_cpu_s=0.4)])
    assert client_is_limit(EIGHT, [block(client_cpu_s=0.7, server_cpu_s=1.3)])
    slow, fast = (Load(kind="open loop", clients=64, rate=rate) for rate in (1000.0, 5000.0))
    busy = [block(1000, client_cpu_s=0.5, server_cpu_s=0.4)]
    assert not client_is_limit(slow, busy) and client_is_limit(fast, busy)


def test_a_search_finds_the_rate_at_its_limit():
    tried = []

    def probe(rate: float, seconds: float) -> Probed:
        tried.append((rate, seconds))
        return Probed(p99_ns=1e6 / max(1e-3, 1 - rate / 1000), complete=True)

    found = search_rate(probe, most_per_s=1000.0, limit_ns=4e6, probe_s=0.5)
    assert found.rate == pytest.approx(750, rel=0.04) and found.rate <= 750
    assert len(tried) == 6 and [p.kept for p in found.probes] == [rate <= 750 for rate, _ in tried]
    assert min(seconds for _, seconds in tried) == 0.5
    nothing = search_rate(probe, most_per_s=1000.0, limit_ns=1e5, probe_s=0.5)
    assert nothing.rate == 0 and len(nothing.probes) == 12
    limited = RateAtLimit(rows=1, limit_ns=1e5, rates=(nothing.rate,), probes=nothing.probes)
    assert limited.below == min(each.rate for each in nothing.probes) < 1000 * 0.15 / 4**2
    first = dataclasses.replace(serving_comparison().baseline, rates_at_limit=(limited,))
    alone = dataclasses.replace(serving_comparison(), variants=(first,))
    assert f"less than {limited.below:.0f}" in str(alone)
    unsent = search_rate(
        lambda *_: Probed(p99_ns=1.0, complete=False), most_per_s=10.0, limit_ns=9.0, probe_s=0.5
    )
    assert unsent.rate == 0
    assert RateAtLimit(rows=1, limit_ns=1e5, rates=(0.0, 10.0)).per_s is None


def test_a_search_looks_below_where_every_rate_was_too_high():
    def probe(rate: float, seconds: float) -> Probed:
        return Probed(p99_ns=1.0 if rate <= 20 else 9.0, complete=True)

    found = search_rate(probe, most_per_s=1000.0, limit_ns=4.0, probe_s=0.5)
    assert found.rate == pytest.approx(20, rel=0.1) and found.rate <= 20
    assert RateAtLimit(rows=1, limit_ns=4.0, rates=(found.rate,), probes=found.probes).below is None


def test_a_search_looks_above_the_rate_of_clients_that_wait():
    def probe(rate: float, seconds: float) -> Probed:
        return Probed(p99_ns=1.0 if rate <= 9000 else 9.0, complete=True)

    found = search_rate(probe, most_per_s=1000.0, limit_ns=4.0, probe_s=0.5)
    assert found.rate == pytest.approx(9000, rel=0.1) and len(found.probes) == 18
    limited = RateAtLimit(rows=1, limit_ns=4.0, rates=(found.rate,), probes=found.probes)
    assert not limited.at_least
    endless = search_rate(probe, most_per_s=10.0, limit_ns=4.0, probe_s=0.5)
    assert 500 < endless.rate < 750 and len(endless.probes) == 24
    limited = dataclasses.replace(limited, rates=(endless.rate,), probes=endless.probes)
    assert limited.at_least
    first = dataclasses.replace(serving_comparison().baseline, rates_at_limit=(limited,))
    alone = dataclasses.replace(serving_comparison(), variants=(first,))
    assert "at least " in str(alone)


def test_a_search_of_a_slow_model_says_how_long_it_takes():
    assert expected_s(1000.0, 0.5) == pytest.approx(6 * 0.5)
    assert expected_s(100.0, 0.5) == pytest.approx(6 * 4.0)
    assert expected_s(300.0, 0.5) == pytest.approx(6 * 200 / (300 * (0.15 * 1.15) ** 0.5))


def _answers(*values, kind="float32"):
    """Answers of one output `y` to some requests; None is an error."""
    return Answers(
        outputs=("y",),
        values=tuple(() if each is None else (np.asarray(each),) for each in values),
        errors=tuple("failed" if each is None else "" for each in values),
        types=(kind,),
    )


@pytest.mark.parametrize(
    ("mine", "base", "requests", "words"),
    [
        # Small numbers of one request are rounded as the large ones of another.
        ([[2.0], [3.003e-4]], [[2.0], [3e-4]], 2, "equal but for rounding (by 1.5e-07 in 'y')"),
        ([[0.0, 1.0]], [[-0.0, 1.0]], 1, "equal but for rounding (by 0.0e+00 in 'y')"),
        ([[0.0]], [[-0.0]], 1, "equal but for rounding (by 0.0e+00 in 'y')"),
        ([[np.inf, 1.0]], [[np.inf, 1.0001]], 1, "equal but for rounding (by 1.0e-04 in 'y')"),
        ([[2.0]], [[2.1]], 1, "other answers (by 4.8e-02 in 'y')"),
        ([[np.nan]], [[1.0]], 1, "other answers (in 'y')"),
        ([[1e-9]], [[0.0]], 1, "other answers (in 'y')"),
        ([[1]], [[2]], 1, "other answers (in 'y')"),
        ([[1.0]], [[1.0, 1.0]], 1, "other answers (in 'y')"),
        ([[1.0], None], [[1.0], None], 1, "bit-equal"),
        ([[1.0], None], [[1.0], [1.0]], 2, "other answers (in 'y')"),
        ([None, None], [None, None], 0, "not compared"),
    ],
)
def test_receipts(mine, base, requests, words):
    found = receipt("inline", 1, _answers(*mine), _answers(*base))
    assert (found.requests, found.words) == (requests, words)
    assert found.passed == words.startswith(("bit", "equal"))
    assert found.differs == words.startswith("other")


# What one rounding makes of 1, what several make, and what none do.
ROUNDED = {
    "float16": (np.float16, 2**-10, 2**-8, 2**-6),
    # As float32 has it.
    "bfloat16": (np.float32, 2**-7, 2**-5, 2**-4),
    "float32": (np.float32, 2**-23, 9e-5, 2e-4),
    "float64": (np.float64, 2**-52, 1e-13, 1e-9),
    "complex128": (np.complex128, 2**-52, 1e-13, 1e-9),
}


@pytest.mark.parametrize("kind", ROUNDED)
def test_what_rounding_makes_is_of_the_type_of_the_output(kind):
    dtype, once, some, other = ROUNDED[kind]
    # A third is no number of a shorter type.
    base = np.array([1 / 3, 1, 0.001], dtype)
    for difference, passes in ((once, True), (some, True), (other, False), (0.1, False)):
        mine = base + np.array([0, difference, 0], dtype)
        assert mine.tobytes() != base.tobytes()
        found = receipt("inline", 1, _answers(mine, kind=kind), _answers(base, kind=kind))
        assert found.passed == passes and not found.bit_equal, found
        # The small numbers beside it are rounded as it is.
        mine = base + np.array([0, 0, difference], dtype)
        found = receipt("inline", 1, _answers(mine, kind=kind), _answers(base, kind=kind))
        assert found.passed == passes, found


def test_float32_numbers_in_float64_are_rounded_as_such():
    base = np.float32([1 / 3, 0.7])
    mine = np.nextafter(base, np.float32(1))
    wide = [_answers(each.astype(np.float64), kind="float64") for each in (mine, base)]
    assert receipt("inline", 1, *wide).passed
    exact = _answers(base.astype(np.float64) / 3, kind="float64")
    close = _answers(mine.astype(np.float64) / 3, kind="float64")
    assert receipt("inline", 1, close, exact).differs


def test_of_two_outputs_the_one_that_rounding_does_not_explain_is_named():
    def both(short, wide):
        values = (np.asarray([short], np.float16), np.asarray([wide], np.float32))
        return Answers(
            outputs=("s", "w"), values=(values,), errors=("",), types=("float16", "float32")
        )

    found = receipt("inline", 1, both(1 + 2**-10, 1.0005), both(1.0, 1.0))
    assert found.differs and found.output == "w"
    assert receipt("inline", 1, both(1 + 2**-10, 1.00005), both(1.0, 1.0)).passed


@pytest.mark.parametrize(
    ("given", "limit_ns"),
    [("3x", 6e6), ("2.5 x", 5e6), ("5ms", 5e6), ("250us", 250e3), (0.01, 1e7)],
)
def test_limits_of_p99(given, limit_ns):
    assert P99Limit.of(given).in_ns(2e6) == pytest.approx(limit_ns)


@pytest.mark.parametrize("given", ["3x", "2.5x", "5ms", "0.25ms"])
def test_a_limit_is_written_as_it_is_read(given):
    assert P99Limit.of(given).given == given


@pytest.mark.parametrize("given", ["", "fast", "-1ms", "0x", "0.5x", -1, True, "1e400s"])
def test_other_limits_are_refused(given):
    with pytest.raises(OptionError, match="p99_limit is"):
        P99Limit.of(given)


def test_no_limit_is_none():
    assert P99Limit.of(None) is None and P99Limit.of("none") is None


def test_what_is_out_of_range_is_refused_before_anything_runs(tmp_path):
    program = served(tmp_path)
    with pytest.raises(OptionError, match="seed is -1; expected an integer of at least 0"):
        serve_bench(program, seed=-1)
    with pytest.raises(OptionError, match="rows is empty; expected"):
        served(tmp_path, rows=[])


def test_loads_begin_with_one_client():
    assert loads_of([8], [100]) == [ONE, EIGHT, Load(kind="open loop", clients=64, rate=100.0)]
    assert loads_of([1], []) == [ONE]
    for clients, rates in (([0], []), ([8, 8], []), ([], [0]), (["8"], [])):
        with pytest.raises(OptionError):
            loads_of(clients, rates)


def test_a_budget_is_divided_and_blocks_have_a_least_length():
    loads = [(ONE, 1), (EIGHT, 1)]
    plan = schedule(loads, variants=2, searched_rows=1, rounds=5, budget_s=80.0)
    assert plan.seconds == pytest.approx(80) and plan.block_s == plan.probe_s == 1.0
    short = schedule(loads, variants=2, searched_rows=0, rounds=5, budget_s=1.0)
    assert short.block_s == 0.4 and short.seconds == pytest.approx(8.0) and short.probe_s == 0


def test_under_inline_as_many_steps_run_as_there_are_cores():
    inline, normal = Optimizations(executor="inline"), Optimizations()
    assert steps_at_once_of(inline) > 0 and steps_at_once_of(normal) == 0
    chosen = Optimizations(executor="inline", chosen=(STEPS_AT_ONCE.at("none"),))
    assert steps_at_once_of(chosen) == 0
    assert steps_at_once_of(Optimizations(chosen=(STEPS_AT_ONCE.at(3),))) == 3


def test_settings_have_names_and_stand_once():
    labels = [v.label for v in serving_variants(["auto_fused+inline_executor", "sessions=2"])]
    assert labels == ["off", "auto fused + inline executor", "sessions 2"]
    assert len(serving_variants([SESSIONS])) == len(SESSIONS.choices)
    with pytest.raises(OptionError, match="asked for twice"):
        serving_variants(["inline_executor", "inline_executor"])


@pytest.mark.parametrize(
    ("toggle", "reason"),
    [
        ("stage", "no input that could run ahead"),
        ("smart_stage", "no input that could run ahead"),
        ("fused_v2", "its graph is finished"),
        ("tf_data=prefetch", "of input pipelines"),
        ("xla=function", "no tf.function"),
        ("caller_thread=on+inline_executor", "exclude each other"),
        ("sessions=5", "no choice"),
        ("faster", "there is no toggle"),
        (Optimizations(batch_size=4), "rows says"),
        (7, "expected a name"),
    ],
)
def test_what_a_served_model_cannot_have(toggle, reason):
    with pytest.raises(OptionError, match=reason):
        serving_variants([toggle])

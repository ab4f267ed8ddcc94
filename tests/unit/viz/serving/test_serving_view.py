"""What the result of a served model says, in every outlet."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.builders.served_models import (
    EIGHT,
    FAST,
    FAST_LABEL,
    MANY,
    ONE,
    at_limit,
    baseline,
    fast,
    of_all_kinds,
    point,
    served,
)
from workbench.core.optimizations import Optimizations
from workbench.core.toggles.stock import CALLER_THREAD
from workbench.errors import OptionError
from workbench.experiments.serving.points import RateAtLimit, RateProbe
from workbench.experiments.serving.results import Receipt, ServingComparison
from workbench.experiments.serving.variants import serving_variants
from workbench.viz.documents import document
from workbench.viz.notebook import bundle, text
from workbench.viz.serving.view import ServingView, serving_view


def plain(words: str) -> str:
    return words.replace("\u00a0", " ").replace("\u2009", "").replace("\u2060", "")


def said(comparison: ServingComparison) -> str:
    return plain("".join(words for words, _ in serving_view(comparison).sentence))


def html_of(comparison: ServingComparison) -> str:
    shown = bundle(comparison)[0]["text/html"]
    return plain(re.sub(r"<style>.*?</style>", "", shown, flags=re.S))


def of_ratio(per_s: float, p99_ms: float, half: float = 0.01, **changes: Any) -> ServingComparison:
    """A baseline of 1,000 requests/s with a p99 of 40 ms, and one setting beside it."""
    first = baseline(points=(point(MANY, 1000, 30, 40),), rates_at_limit=())
    # The swing of its blocks is the other way round, so that the ratios vary.
    other = fast(points=(point(MANY, per_s, 20, p99_ms, half=-half),), rates_at_limit=())
    return served(first, other, **changes)


def test_the_news_come_first() -> None:
    sentence = serving_view(served()).sentence
    assert said(served()).startswith(
        "Auto fused + inline executor answers 1.84× the requests a second of all off with 32 "
        "clients (95 % interval 1.80–1.87), p99 0.20× (0.19–0.20), and the answers are the same."
    )
    assert [plain(words) for words, strong in sentence if strong] == [
        "1.84× the requests a second",
        "0.20×",
    ]


def test_the_load_that_is_told_is_the_most_clients_whatever_was_measured() -> None:
    few = served(
        baseline(points=(point(EIGHT, 1600, 4, 9), point(ONE, 900, 1, 2)), rates_at_limit=()),
        fast(points=(point(EIGHT, 1700, 4, 8), point(ONE, 1900, 0.5, 1)), rates_at_limit=()),
    )
    assert "1.06× the requests a second of all off with 8 clients" in said(few)


def test_the_rate_at_the_limit_and_larger_requests_are_news_too() -> None:
    news = [plain(line) for line in serving_view(of_all_kinds()).news]
    assert news[0].startswith("With 32 rows a request and 32 clients it answers 1.64× the requests")
    assert news[1].startswith("Within a p99 of 3.2 ms with 1 row a request it takes 2300 ± ")
    assert "instead of 1150 ± " in news[1] and "2.00×" in news[1]
    assert len(news) == 2


def test_a_baseline_that_keeps_no_rate_is_told_too() -> None:
    tried = (RateProbe(round=0, rate=260.0, p99_ns=9e6, kept=False),)
    none = RateAtLimit(rows=1, limit_ns=3.2e6, rates=(0.0,), probes=tried)
    comparison = of_all_kinds()
    first = dataclasses.replace(comparison.baseline, rates_at_limit=(none,))
    comparison = dataclasses.replace(comparison, variants=(first, *comparison.variants[1:]))
    news = plain(serving_view(comparison).news[1])
    assert news.endswith(" instead of less than 260.")


def test_what_the_interval_does_not_show_is_not_claimed() -> None:
    near = of_ratio(1004, 40, half=0.05)
    assert said(near).startswith(
        "No clear difference: auto fused + inline executor answers 1.00× the requests a second of "
        "all off with 32 clients (95 % interval 0."
    )
    assert serving_view(near).next_step.startswith("Leave all off, or measure longer")


def test_a_setting_that_is_slower_is_left_off() -> None:
    slow = of_ratio(700, 60)
    assert "0.70× the requests a second" in said(slow)
    assert serving_view(slow).next_step.startswith("Leave all off for this model")
    row = serving_view(slow).throughput.groups[0].rows[1]
    assert row.harm and row.verdict == "▼ slower"
    first, other = slow.variants
    both = served(first, other, dataclasses.replace(other, label="inline executor"))
    assert said(both).startswith("Every setting is slower than all off with 32 clients.")


def test_more_requests_with_a_longer_p99_come_with_what_mends_it() -> None:
    first = baseline(points=(point(ONE, 900, 1, 1.5), point(MANY, 1000, 30, 40)), rates_at_limit=())
    other = fast(
        points=(point(ONE, 1400, 0.7, 0.9), point(MANY, 1400, 20, 110)),
        rates_at_limit=(),
        steps_at_once=0,
    )
    next_step = serving_view(served(first, other)).next_step
    assert next_step.startswith("Serve with auto fused + inline executor;")
    assert "Its p99 is longer. Let 2 steps run at one time" in next_step
    assert "longer" not in serving_view(served()).next_step


def test_other_answers_come_before_a_gain() -> None:
    receipts = (
        Receipt(
            label=FAST_LABEL,
            rows=1,
            requests=64,
            bit_equal=False,
            largest_difference=0.03,
            output="score",
        ),
    )
    other = of_ratio(1800, 30, receipts=receipts)
    assert said(other).endswith("; the answers are not the same.")
    assert serving_view(other).next_step.startswith("Leave auto fused + inline executor off until")
    row = serving_view(other).throughput.groups[0].rows[1]
    assert row.differs and row.answers == "others: 3.0e-02 in score"
    assert serving_view(other).receipt.sentence == (
        "Auto fused + inline executor does not answer as the baseline does, on a sample of 64 "
        "requests."
    )


def test_a_setting_that_answers_alike_comes_before_a_faster_one_that_does_not() -> None:
    first, other = of_ratio(1800, 30).variants
    honest = fast(label="fused", points=(point(MANY, 1300, 20, 35),), rates_at_limit=())
    receipts = (
        Receipt(label=other.label, rows=1, requests=9, bit_equal=False, largest_difference=1.0),
        Receipt(label="fused", rows=1, requests=9, bit_equal=True),
    )
    both = served(first, other, honest, receipts=receipts)
    assert said(both).startswith("Fused answers 1.30× the requests a second")
    assert "the best of 2 settings" in said(both)
    assert serving_view(both).receipt.sentence.startswith("1 of 2 settings answer")


def test_one_setting_alone_says_its_rate_and_what_to_do() -> None:
    alone = served(baseline())
    assert said(alone).startswith("All off answers 1640 ± ")
    assert "with 32 clients, p99 62.0 ms." in said(alone)
    assert serving_view(alone).next_step.startswith("Let 2 steps run at one time")
    calm = served(baseline(points=(point(ONE, 1000, 1.0, 1.1),)))
    assert serving_view(calm).next_step == "Measure it beside a setting: give it a toggle."
    assert serving_view(calm).nothing


def test_a_model_that_answers_nothing_is_said_to() -> None:
    block = dataclasses.replace(
        point(ONE, 1, 1, 1).blocks[0], answered=0, failed=40, percentiles_ns=()
    )
    dead = dataclasses.replace(point(ONE, 1, 1, 1), blocks=(block,), first_error="no table 'c3'")
    comparison = served(baseline(points=(dead,)), fast(points=(dead,), rates_at_limit=()))
    assert said(comparison) == "No answer with 1 client: no table 'c3'."
    assert serving_view(comparison).throughput.groups[0].rows[0].rate == "–"
    assert "no table" in html_of(comparison)
    assert document(comparison)["answer"] == "No answer with 1 client: no table 'c3'."


def test_one_round_has_numbers_without_intervals() -> None:
    def first_round(variant: Any) -> Any:
        points = tuple(dataclasses.replace(p, blocks=p.blocks[:1]) for p in variant.points)
        return dataclasses.replace(variant, points=points, rates_at_limit=())

    view = serving_view(served(first_round(baseline()), first_round(fast()), rounds=1))
    row = view.throughput.groups[0].rows[0]
    assert row.half == "" and row.low == row.bar == row.high
    assert "inf" not in text(served(first_round(baseline()), rounds=1))
    two = served(first_round(baseline()), first_round(fast()), rounds=1)
    assert said(two).endswith("with 32 clients, p99 62.6 ms. One round gives no ratio.")
    assert serving_view(two).next_step.startswith("Measure with more rounds: two give a ratio")


def test_a_setting_that_did_not_answer_in_a_block_has_no_ratio() -> None:
    whole = point(MANY, 1000, 30, 40)
    empty = dataclasses.replace(whole.blocks[0], answered=0, failed=2, percentiles_ns=())
    broken = dataclasses.replace(
        whole, blocks=(empty, *whole.blocks[1:]), first_error="no row 7 here"
    )
    two = served(baseline(points=(whole,)), fast(points=(broken,), rates_at_limit=()))
    assert said(two).endswith(
        "A block of auto fused + inline executor has no answer: no row 7 here."
    )
    assert serving_view(two).next_step.startswith("Look at that error, or measure with longer")


def test_answers_that_were_not_compared_are_not_called_the_same() -> None:
    receipts = (Receipt(label=FAST_LABEL, rows=1, requests=0, bit_equal=False),)
    none = of_ratio(1800, 30, receipts=receipts)
    assert said(none).endswith("; whether the answers are the same was not checked.")
    view = serving_view(none)
    assert view.receipt.sentence == "The answers of settings were not compared."
    assert view.throughput.groups[0].rows[1].answers.startswith("not compared")
    assert not view.throughput.groups[0].rows[1].differs
    assert document(none)["receipts"][0]["passed"] is None


def test_every_row_stands_on_one_axis() -> None:
    view = serving_view(of_all_kinds())
    headings = [plain(group.heading) for group in view.throughput.groups]
    assert headings == ["With 32 clients, 1 row a request", "With 32 clients, 32 rows a request"]
    rows = [row for group in view.throughput.groups for row in group.rows]
    assert all(0 < row.low <= row.bar <= row.high <= 1 for row in rows)
    small, large = (group.rows[0].bar for group in view.throughput.groups)
    assert small / large == pytest.approx(1640 / 700, rel=0.01)
    assert rows[0].ratio == "baseline" and rows[0].answers == "reference"
    assert rows[1].answers == "the same, bit by bit" and rows[2].answers.startswith("others")


def test_tables_have_every_load() -> None:
    view = serving_view(of_all_kinds())
    assert len(view.points.rows) == 7 * 3
    assert len({len(row) for row in (view.points.heads, *view.points.rows)}) == 1
    assert plain(view.points.rows[0][0]) == "1 client, 1 rows" or view.points.rows[0][0]
    assert view.limits is not None and [row[0] for row in view.limits.rows] == [
        "All off",
        "Auto fused + inline executor",
    ]
    assert [row[2] for row in view.serves.rows] == ["any", "2", "any"]
    limited = serving_view(served(baseline(rates_at_limit=(at_limit(9, client_is_limit=True),))))
    assert limited.limits is not None and limited.limits.rows[0][3].endswith(", at least")


def test_text_has_answer_settings_findings_and_where_it_comes_from() -> None:
    words = plain(text(of_all_kinds()))
    for expected in (
        "ranker: Auto fused + inline executor answers 1.84×",
        "Next: Serve with auto fused + inline executor",
        "With 32 clients, 32 rows a request:",
        "Requests failed (2 inter-op threads)",
        "More steps run at one time than there are cores (All off, and 2 inter-op threads)",
        "Requests: 512 requests made from the signature",
        "95 % interval of 6 paired blocks",
    ):
        assert expected in words, expected
    assert max(map(len, words.splitlines()[:12])) <= 140


def test_html_says_the_same_and_its_pictures_have_words() -> None:
    shown = html_of(of_all_kinds())
    for expected in (
        "answers <strong>1.84× the requests a second</strong> of all off",
        'aria-label="Clients that wait for their answers, 1 row a request. All off answers 1640 ±',
        'aria-label="All off: at most 32 steps at one time; in the median a request waits 0 ms',
        "What holds requests up",
        "Receipt of the answers",
        "workbench serve-bench ranker --clients 1,8,32",
    ):
        assert expected in shown, expected
    assert "<script" not in shown and "http" not in shown


def test_names_are_words_and_no_markup() -> None:
    strange = served(
        program="<b>x</b>\n\x1b[31m",
        requests_from="from <i>y</i>",
        signature="<u>",
        environment={"cpu": "<s>"},
    )
    shown = html_of(strange)
    assert not re.search(r"<(b|i|u|s)>", shown)
    assert "\x1b" not in text(strange)


def test_the_report_is_one_page_without_script_or_network(tmp_path: Path) -> None:
    path = wb.write_report(served(), tmp_path / "report.html")
    page = path.read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>") and page.count("<h1>") == 1
    assert "<script" not in page and not re.search(r'(src|href)="(?!data:|#)', page)
    assert "2026-11-29 08:03 UTC" in plain(page) and "TensorFlow 2.21.0" in page
    both = wb.write_report([served(), of_all_kinds()], tmp_path / "both.html")
    assert both.read_text("utf-8").count('class="wb-sentence"') == 2


def test_a_report_of_both_kinds_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="measurements of served models"):
        wb.write_report([served(), "a comparison"], tmp_path / "x.html")  # type: ignore[list-item]
    assert not (tmp_path / "x.html").exists()


def test_a_document_has_the_answer_and_the_findings() -> None:
    words = document(of_all_kinds())
    json.dumps(words, allow_nan=False)
    assert plain(words["answer"]).startswith("Auto fused + inline executor answers 1.84×")
    assert words["next"].startswith("Serve with") and words["findings"][0]["title"]


def test_the_view_holds_finished_words_alone() -> None:
    view: ServingView = serving_view(served())
    assert view.taken_at == "2026-11-29 08:03 UTC"
    assert ("CPU", "A Processor @ 2.60GHz") in view.environment
    assert dataclasses.replace(view) == view


def test_the_cell_measures_the_same_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Optimizations(
        executor="normal", intra_op_threads=1, chosen=(wb.toggles.XLA.at("clusters"),)
    )
    limited = dataclasses.replace(FAST, chosen=(wb.toggles.STEPS_AT_ONCE.at(2),))
    first = of_all_kinds().variants[0]
    others = [
        dataclasses.replace(first, label=setting.label(), optimizations=setting)
        for setting in (limited, slow)
    ]
    calls: list[Any] = []
    monkeypatch.setattr(wb, "serve_bench", lambda *given, **named: calls.append((given, named)))
    code = serving_view(served(first, *others, command="")).code
    exec(code, {"program": "the program"})
    ((program, settings), named) = calls[0]
    assert program == "the program"
    assert [variant.optimizations for variant in serving_variants(settings)][1:] == [limited, slow]
    assert named["clients"] == [1, 8, 32] and named["rates"] == [400, 900]
    assert named["p99_limit"] == pytest.approx(0.00315) and named["rounds"] == 6
    assert named["seed"] == 1 and named["budget"] == 60
    strange = {"p99_limit": "3x", "seed": "__import__('os')", "budget_s": float("inf")}
    changed = served(first, *others, command="", settings=strange, program="a\nraise\n#")
    exec(serving_view(changed).code, {"program": "the program"})
    assert calls[1][1]["p99_limit"] == "3x" and {"seed", "budget"}.isdisjoint(calls[1][1])
    assert '"auto_fused+inline_executor+steps_at_once=2"' in code
    assert serving_view(served()).code.startswith("workbench serve-bench ranker")


def test_a_wide_interval_is_said_by_its_ends_and_does_not_stretch_the_axis() -> None:
    noisy = point(MANY, 300, 30, 60, half=0.9)
    view = serving_view(served(baseline(points=(noisy,)), fast(points=(noisy,))))
    row = view.throughput.groups[0].rows[0]
    assert re.fullmatch(r"\(.*–.*\)", row.half)
    assert row.bar >= 0.5 and row.high <= 1.0
    mark = view.charts[0].lines[0].marks[0]
    assert mark.x >= 0.5 and mark.x_high <= 1.0


def test_the_best_setting_comes_with_a_session_of_ones_own() -> None:
    code = serving_view(served()).in_program
    assert 'config = wb.executor_options("inline")' in code
    assert 'wb.plan_fusion(model, signature="serving_default")' in code
    assert "# a semaphore of 2 around Session.run" in code
    two = dataclasses.replace(
        FAST,
        executor=None,
        chosen=(wb.toggles.SESSIONS.at(2), wb.toggles.STEPS_AT_ONCE.at("none")),
    )
    environment = {"cores": 8}
    measured = fast(optimizations=two, sessions=2, steps_at_once=0)
    code = serving_view(served(baseline(), measured, environment=environment)).in_program
    assert "config.use_per_session_threads = True" in code
    assert "config.inter_op_parallelism_threads = 4" in code and "semaphore" not in code
    caller = (wb.toggles.SESSIONS.at(2), CALLER_THREAD.at("on"))
    measured = dataclasses.replace(measured, optimizations=dataclasses.replace(two, chosen=caller))
    code = serving_view(served(baseline(), measured, environment=environment)).in_program
    assert "config.inter_op_parallelism_threads = -1" in code
    assert "per_session" not in code and code.count("inter_op_parallelism") == 1
    assert serving_view(served(baseline())).in_program == ""
    assert "In a program of your own" not in text(served(baseline()))

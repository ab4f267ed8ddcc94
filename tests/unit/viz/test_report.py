"""The report page: complete, self-contained, escaped, whole or absent."""

from __future__ import annotations

import dataclasses
import html
import json
import re
from argparse import Namespace
from html.parser import HTMLParser

import pytest

from tests.builders.comparisons import (
    ENVIRONMENT,
    SETTINGS,
    comparison,
    every_toggle_comparison,
    planned_comparison,
    variant,
)
from tests.builders.plans import towers
from tests.builders.timelines import frame_of
from tests.builders.traces import STEP_NODES, big_trace, staged_trace, unstaged_trace
from workbench.core.optimizations import Optimizations
from workbench.core.options import StageOptions
from workbench.core.planning.planner import plan_stages
from workbench.core.trace.metrics import step_metrics
from workbench.errors import OptionError
from workbench.experiments.program.configuration import Configuration
from workbench.experiments.program.origin import Origin
from workbench.viz import kept_picture, report
from workbench.viz.notebook import bundle
from workbench.viz.report import report_html, write_report
from workbench.viz.timeline.scale import ONE_SCALE, on_one_scale
from workbench.viz.timeline.view import timeline_view

NASTY = "<script>alert(1)</script>\"'&\u2028</title>{{ 7 * 7 }}"


class Page(HTMLParser):
    """Elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.raw: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        self.words += " " if tag in ("dt", "dd", "th", "td", "p", "br") else ""
        if tag in ("script", "style"):
            self.raw.append("")

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside in ("script", "style"):
            self.raw[-1] += data
        else:
            self.words += data

    def count(self, tag):
        return sum(name == tag for name, _ in self.elements)


def words(text):
    return re.sub(r"[\s\u00a0]+", " ", Page(text).words.replace("\u2060", ""))


def test_it_has_the_answer_the_numbers_and_where_they_come_from():
    known = {
        "measured": "2026-11-29T06:30+00:00",
        "host": "build-7",
        "project": "ranker 1a2b3c4d5e",
    }
    shown = words(report_html(comparison(environment={**ENVIRONMENT, **known})))
    for part in (
        "Stage trains 1.83× as fast as all off (95 % interval 1.80–1.86), and the training is",
        "39.8 ± 0.4",
        "1.83× 1.80–1.86",
        "▲ faster",
        "95 % interval of 6 paired blocks of 40 to 73 steps",
        "Next: Train with wb.staged(…).",
        "Stage trains the same: bit-equal losses over 200 steps, from the same seed",
        "1 / max(T_input, T_compute): 74.1 steps/s",
        "Before All off",
        "After Stage",
        "2026-11-29 06:30 UTC, on build-7, 2 cores, TensorFlow 2.21.0, project ranker 1a2b3c4d5e",
        "Stage work done while a step computes",
        "TensorFlow 2.21.0",
        "CPU A Processor @ 2.60GHz",
        "tf.data's injected prefetch off",
        "Seed 1",
        "workbench compare dlrm --toggle stage --data clicks.tsv",
    ):
        assert part in shown


def test_numbers_that_json_has_not_are_no_error():
    settings = {**SETTINGS, "configuration": {"rate": float("nan"), "most": float("inf")}}
    page = report_html(comparison(settings=settings))
    assert '"configuration":{"rate":null,"most":null}' in page


def test_the_answer_stands_before_every_table():
    page = report_html(comparison())
    assert page.index("1.83× as fast") < page.index("<table") < page.index("Reproduce it")


def test_harm_is_marked():
    slower = comparison(
        ratios=(comparison().ratios[0].__class__(
            label="stage", ratio=0.9, low=0.8, high=0.95, verdict="slower"
        ),)
    )  # fmt: skip
    assert '<span class="wbr-verdict wb-strong wbr-harm">▼ slower</span>' in report_html(slower)


def test_it_asks_for_nothing_from_anywhere():
    page = Page(report_html(comparison()))
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "srcset", "data"):
            value = attributes.get(name) or ""
            assert not re.match(r"(?i)\s*(https?:|//|file:|ftp:)", value), (tag, name, value)
    policy = next(a for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'")
    assert not re.search(r"@import|url\(|\bfetch\(|XMLHttpRequest|import\(", "".join(page.raw))


def test_every_id_is_there_once():
    page = Page(report_html([comparison(), comparison(settings={**SETTINGS, "batch_size": 64})]))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_user_strings_are_text_and_never_markup():
    nodes = ((NASTY, NASTY), *STEP_NODES[1:])
    staged = staged_trace(stage=NASTY, stage_nodes=((NASTY, NASTY),) * 2, step_nodes=nodes)
    # the same page with harmless strings has the same kinds of element, and as many scripts
    plain, nasty = (
        Page(
            report_html(
                comparison(
                    program=word,
                    variants=(
                        variant("off", 40, 1, trace=unstaged_trace(title=word)),
                        variant(word, 70, 1, trace=trace, notes=(word,)),
                    ),
                    command=word,
                    environment={word: word},
                    settings={word: {word: word}, "data": word},
                )
            )
        )
        for word, trace in (("word", staged_trace()), (NASTY, staged))
    )
    assert {tag for tag, _ in nasty.elements} == {tag for tag, _ in plain.elements}
    for tag in ("script", "title", "style", "section", "table", "a", "code"):
        assert nasty.count(tag) == plain.count(tag)
    assert "<script>alert(1)</script>" in nasty.words
    assert "{{ 7 * 7 }}" in nasty.words
    assert not any(a.keys() & {"onerror", "onload", "onclick"} for _, a in nasty.elements)
    for text in nasty.raw:
        assert "alert(1)" not in text or json.loads(text)


def test_a_plan_is_drawn_and_its_prediction_stands_beside_the_measurement():
    page = report_html(planned_comparison())
    shown = words(page)
    for part in (
        "2.01× 1.98–2.05",
        "◇ 1.95×",
        "predicted by the plan, before anything was measured",
        "Boundary: Smart stage",
        "5 nodes run ahead of the step in two chained stages",
        "Read a table or a constant instead of the variable",
        "Predicted time of a step",
        "New stage for the input",
    ):
        assert part in shown
    assert 'id="b1-1-data"' in page
    assert "Predicted" not in words(report_html(comparison()))


def test_several_comparisons_open_with_all_answers():
    slow = comparison(settings={**SETTINGS, "input_latency_ms": 0.0})
    page = report_html([slow, comparison()])
    assert Page(page).count("nav") == 1
    shown = words(page)
    assert "dlrm, input latency 0 ms: Stage trains 1.83× as fast" in shown
    assert "dlrm, input latency 7.5 ms: Stage trains 1.83× as fast" in shown


def test_date_and_host_are_those_of_what_stands_first():
    ratio = dataclasses.replace(comparison().ratios[0], ratio=1.1, low=1.05, high=1.15)
    slow = comparison(ratios=(ratio,), environment={**ENVIRONMENT, "host": "other-host"})
    page = words(report_html([slow, comparison(environment={**ENVIRONMENT, "host": "this-host"})]))
    assert "on this-host" in page and "on other-host" not in page


@pytest.mark.parametrize("outlet", ["report", "notebook"])
def test_the_timelines_of_a_comparison_have_one_scale(outlet):
    traces = unstaged_trace(5), staged_trace(9)
    measured = (
        variant(label, 40, 1, trace=each)
        for label, each in zip(("off", "stage"), traces, strict=True)
    )
    both = comparison(variants=tuple(measured))
    page = shown = report_html(both)
    if outlet == "notebook":
        shown = bundle(both)[0]["text/html"]
        page = frame_of(shown)
    headers = map(json.loads, re.findall(r'-header">(.*?)</script>', page))
    views = on_one_scale([timeline_view(trace) for trace in traces])
    wanted = [view.to_json_header()["shown"] for view in views]
    assert [header["shown"] for header in headers] == wanted
    assert wanted[0] == wanted[1] > 0
    assert (ONE_SCALE if outlet == "notebook" else "Both have one scale") in words(shown)


def test_without_a_trace_it_says_so():
    bare = comparison(variants=(variant("off", 40, 1), variant("stage", 70, 1)))
    shown = words(report_html(bare))
    assert "This was measured without a trace." in shown
    assert "What steps wait for" not in shown


def test_long_traces_are_cut_to_their_last_steps(monkeypatch):
    traced = comparison(variants=(variant("off", 40, 1, trace=big_trace(20_000)),), ratios=())
    whole = report_html(traced)
    monkeypatch.setattr(report, "TIMELINE_BYTES", 100_000)
    cut = report_html(traced)
    assert len(cut) < len(whole) - 50_000
    found = re.search(r"Steps (\d+) to 41 of the trace", words(cut))
    assert found
    assert 20 < int(found[1]) <= 41


def test_no_more_of_a_long_trace_is_drawn_than_may_fit(monkeypatch):
    drawn = []

    def counting(trace, **options):
        view = timeline_view(trace, **options)
        drawn.append(len(view.spans.start))
        return view

    monkeypatch.setattr(kept_picture, "timeline_view", counting)
    monkeypatch.setattr(report, "TIMELINE_BYTES", 100_000)
    traced = comparison(variants=(variant("off", 40, 1, trace=big_trace(100_000)),), ratios=())
    assert "of the trace" in report_html(traced)
    assert max(drawn) < 40_000


def test_a_report_of_ten_settings_is_under_two_megabytes():
    trace = big_trace(30 * 500)
    every = every_toggle_comparison(trace, trace)
    more = tuple(variant(f"setting {n}", 50 + n, 1, trace=trace) for n in range(3))
    ratios = tuple(
        dataclasses.replace(every.ratios[0], label=each.label, ratio=1.1) for each in more
    )
    ten = dataclasses.replace(
        every, variants=(*every.variants, *more), ratios=(*every.ratios, *ratios)
    )
    assert len(ten.variants) == 11
    assert len(report_html(ten).encode()) < 2_000_000


def test_the_best_stands_first_and_the_baseline_behind_what_is_faster():
    page = report_html(every_toggle_comparison())
    rows = re.findall(r'<th role="rowheader" scope="row">([^<]*)</th>', page)
    assert rows[0] == "Stage + smart stage + fused V2 + cost model executor"
    assert rows[4] == "All off"
    assert rows[-1] == "Inline executor"


def test_the_comparison_with_the_best_result_stands_first():
    slow = comparison(
        settings={**SETTINGS, "input_latency_ms": 0.0},
        ratios=(dataclasses.replace(comparison().ratios[0], ratio=1.2, low=1.1, high=1.3),),
    )
    page = report_html([slow, comparison()])
    assert page.index('id="result-2"') < page.index('id="result-1"')
    assert "with input latency 7.5 ms, the best of 2 results with 2 inputs" in words(page)


def test_all_but_the_news_is_folded():
    page = report_html(planned_comparison())
    main, appendix = page.split('aria-label="Appendix"')
    for title in (
        "How it was measured",
        "Boundary: Smart stage",
        "Settings, seeds",
        "Reproduce it",
    ):
        assert title in appendix
        assert title not in main.split("<body", 1)[1]
    assert "<details" not in main.split("<body", 1)[1].split("wbr-appendix")[0]


@pytest.mark.parametrize("wrong", ["kernel", 'type="radio"', "Run shown"])
def test_nothing_is_in_it_that_a_reader_of_mail_cannot_use(wrong):
    page = report_html([planned_comparison(), comparison()])
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert wrong not in shown


def test_next_has_a_cell_that_compares_the_best_setting_with_the_baseline():
    settings = (Optimizations(), Optimizations(stage=StageOptions(capacity=2)))
    origin = Origin(model="dlrm", options={"batch_size": 64, "data": None})
    configuration = Configuration(
        program="dlrm",
        origin=origin,
        settings=settings,
        budget_s=20.0,
        trace_steps=30,
        step_stats=False,
        equivalence_steps=50,
        seed=1,
    )
    known = comparison(settings={**SETTINGS, "configuration": configuration.to_json()})
    cell = html.unescape(
        re.search(r'<code id="next-1">(.*?)</code>', report_html(known), re.DOTALL)[1]
    )
    asked = []

    class Recorded:
        models = Namespace(dlrm=lambda **options: ("dlrm", options))
        Optimizations, StageOptions = Optimizations, StageOptions

        @staticmethod
        def compare(*arguments, **options):
            asked.append((arguments, options))

    exec(cell.replace("import workbench as wb", ""), {"wb": Recorded})
    assert asked == [
        ((("dlrm", {"batch_size": 64}), [settings[1]]), {"budget_s": 20, "trace_steps": 30})
    ]


def test_a_program_that_only_a_notebook_knows_has_no_cell():
    assert 'id="next-1"' not in report_html(comparison())


def test_writing_replaces_the_file_whole(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(comparison(), path) == path
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(report, "report_html", lambda _: "\ud800")  # no UTF-8 for this
    with pytest.raises(UnicodeEncodeError):
        write_report(comparison(), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_an_empty_list_is_refused():
    with pytest.raises(OptionError, match="there is no comparison to report; expected one or"):
        report_html([])


@pytest.mark.parametrize("given", [staged_trace(), [staged_trace()], [comparison(), 3], "results"])
def test_what_is_no_comparison_is_refused(given, tmp_path):
    with pytest.raises(OptionError, match=r"of type \w+; expected what wb\.compare returned"):
        write_report(given, tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "value",
    [
        plan_stages(towers()),
        towers(),
        comparison(),
        planned_comparison(),
        staged_trace(),
        step_metrics,
    ],
    ids=["plan", "boundary", "comparison", "planned", "trace", "metrics"],
)
def test_a_bundle_is_html_and_text_alone(value):
    # a viewer would prefer a widget view, also where neither kernel nor state is there to draw it
    shown = value(staged_trace()) if value is step_metrics else value
    data, metadata = shown._repr_mimebundle_()
    assert data.keys() == {"text/html", "text/plain"}
    assert metadata == {}


def test_metrics_show_as_html_and_text():
    data, _ = step_metrics(staged_trace())._repr_mimebundle_()
    assert "Stage work done while a step computes" in words(data["text/html"])


def test_a_front_end_gets_only_what_it_asks_for():
    assert list(staged_trace()._repr_mimebundle_(include=["text/plain"])[0]) == ["text/plain"]
    assert list(staged_trace()._repr_mimebundle_(exclude=["text/html"])[0]) == ["text/plain"]


def test_what_nobody_can_show_is_refused():
    with pytest.raises(TypeError, match="nothing here shows a dict; expected one of Trace, Step"):
        bundle({})


def test_user_strings_in_a_notebook_are_text_too():
    nasty = comparison(
        variants=(variant(NASTY, 40, 1, trace=unstaged_trace(title=NASTY)),), ratios=()
    )
    page = Page(nasty._repr_mimebundle_()[0]["text/html"])
    assert page.count("script") == 0
    assert "<script>alert(1)</script>" in page.words

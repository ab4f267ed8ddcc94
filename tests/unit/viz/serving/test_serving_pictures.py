"""Axes, latency against load, and requests over time, as fractions of their axes."""

from __future__ import annotations

import dataclasses
import itertools
import math

import pytest

from tests.builders.served_models import (
    MANY,
    arrivals,
    at_limit,
    baseline,
    of_all_kinds,
    requests,
    served,
)
from workbench.experiments.serving.points import RateProbe
from workbench.viz.serving.axes import latency_axis, rate_axis, tick_words, time_axis
from workbench.viz.serving.load_charts import load_charts
from workbench.viz.serving.request_lanes import RequestLanes, Sent, request_lanes
from workbench.viz.serving.view import serving_view

_MS = 1_000_000


def plain(words: str) -> str:
    return words.replace("\u00a0", " ").replace("\u2009", "")


def sent(*times: tuple[int, float, float, float]) -> list[Sent]:
    """Requests as (client, arrival, start, end) in ms."""
    return [
        Sent(
            client=client,
            arrival_ns=int(arrival * _MS),
            start_ns=int(start * _MS),
            end_ns=int(end * _MS),
            failed=False,
        )
        for client, arrival, start, end in times
    ]


def lanes_of(*settings: tuple[str, list[Sent]], cores: int = 2) -> RequestLanes:
    picture = request_lanes(settings, load="8 clients", cores=cores)
    assert picture is not None
    return picture


def test_latencies_that_double_stand_equally_far_apart() -> None:
    axis = latency_axis([1 * _MS, 8 * _MS])
    places = [axis.at(ms * _MS) for ms in (1, 2, 4, 8)]
    steps = [b - a for a, b in itertools.pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 3)
    assert places[0] > 0 and places[-1] < 1
    assert [plain(text) for _, text in axis.ticks] == ["1 ms", "2 ms", "5 ms", "10 ms"]


def test_an_axis_of_many_decades_has_fewer_ticks() -> None:
    axis = latency_axis([50_000, 5e9])
    assert len(axis.ticks) <= 7
    assert [plain(text) for _, text in axis.ticks] == ["0.1 ms", "1 ms", "10 ms", "100 ms", "1 s"]


def test_what_is_no_time_has_no_place() -> None:
    assert latency_axis([math.inf, 0.0, 2 * _MS]) == latency_axis([2 * _MS])
    assert latency_axis([]).ticks


def test_ticks_are_round_times() -> None:
    words = [plain(tick_words(ns)) for ns in (20_000, 200_000, 5e6, 2e9)]
    assert words == ["20 µs", "0.2 ms", "5 ms", "2 s"]


def test_rates_begin_at_0_and_a_stretch_ends_where_it_does() -> None:
    assert rate_axis([1640.0]).ticks[0] == (0.0, "0")
    assert rate_axis([1640.0]).at(0.0) == 0.0
    axis = time_axis(37 * _MS)
    assert axis.end == 37 * _MS and axis.at(37 * _MS) == 1.0
    assert [plain(text) for _, text in axis.ticks] == ["0", "10 ms", "20 ms", "30 ms"]


def test_a_curve_has_its_loads_from_the_least_to_the_most() -> None:
    (picture,) = load_charts(served(), "auto fused + inline executor")[:1]
    first, other = picture.lines
    assert [mark.short for mark in first.marks] == ["1", "8", "32"]
    assert first.baseline and not other.baseline and first.shape != other.shape
    assert all(mark.p50 < mark.p99 for line in picture.lines for mark in line.marks)
    assert all(
        m.x_low < m.x < m.x_high and m.p99_low < m.p99 < m.p99_high
        for m in (*first.marks, *other.marks)
    )
    assert other.marks[-1].x > first.marks[-1].x and other.marks[-1].p99 < first.marks[-1].p99


def test_a_mark_says_its_numbers_in_two_lines() -> None:
    (picture,) = load_charts(served(), None)[:1]
    words = [plain(line) for line in picture.lines[0].marks[1].words]
    assert words[0].startswith("8 clients: 1600 ± ")
    assert words[1].startswith("p50 4.6 ms, p99 14.0 ms (13.9 ms to 14.1 ms)")


def test_an_open_loop_stands_at_the_rates_that_arrive() -> None:
    charts = load_charts(of_all_kinds(), None)
    assert [plain(chart.heading) for chart in charts] == [
        "Clients that wait for their answers, 1 row a request",
        "Arrivals at a rate, an open loop, 1 row a request",
        "Clients that wait for their answers, 32 rows a request",
    ]
    opened = charts[1]
    axis = rate_axis([2300 * 1.02 * 1.1])
    first = opened.lines[0]
    assert [mark.x for mark in first.marks] == pytest.approx([axis.at(400), axis.at(900)], rel=0.1)
    assert all(mark.x_low == mark.x == mark.x_high for mark in first.marks)
    assert first.at_limit is not None and opened.limit is not None
    assert plain(first.at_limit_words).startswith("1150 ± ")
    assert opened.lines[2].at_limit is None and opened.lines[2].at_limit_words == ""
    assert plain(opened.limit_words) == "limit of the p99: 3.2 ms"


def test_the_search_of_the_limit_alone_makes_a_picture() -> None:
    charts = load_charts(served(), None)
    assert len(charts) == 2 and not charts[1].lines[0].marks
    first, other = charts[1].lines
    assert first.at_limit and other.at_limit and other.at_limit > first.at_limit
    assert len(first.tried) == 18 and all(0 <= x <= 1 and 0 < y < 1 for x, y in first.tried)
    below = [y for x, y in first.tried if x < 0.8 * first.at_limit]
    assert len(below) == 6 and charts[1].limit and max(below) < charts[1].limit


def test_a_rate_without_an_answer_stands_at_the_top() -> None:
    lost = RateProbe(round=0, rate=5000.0, p99_ns=None, kept=False)
    search = dataclasses.replace(at_limit(900), probes=(*at_limit(900).probes, lost))
    first = load_charts(served(baseline(rates_at_limit=(search,))), None)[1].lines[0]
    assert first.tried[-1][1] == 1.0


def test_the_news_of_a_picture_are_where_its_curves_end() -> None:
    news = plain(load_charts(served(), None)[0].news)
    assert "All off answers 1640 ± " in news and "with 32 clients, p99 62.0 ms" in news


def test_more_than_seven_settings_share_the_last_mark() -> None:
    first, other = served().variants
    many = [first, *(type(other)(**{**vars(other), "label": f"s{n}"}) for n in range(9))]
    lines = load_charts(served(*many), "s1")[0].lines
    assert len({line.shape for line in lines}) == 7
    assert [line.named for line in lines] == [True, False, True, *[False] * 7]


def test_a_request_waits_and_then_runs() -> None:
    # A block of 40 ms: its middle is 20 ms, and half of it is shown.
    picture = lanes_of(("off", sent((0, 0, 0, 20), (0, 20, 24, 30), (1, 20, 20, 40))))
    waiting, other = (lane.bars for lane in picture.settings[0].lanes)
    assert (waiting[-1].x, waiting[-1].start) == (0.0, pytest.approx(0.2))
    assert waiting[-1].wait == pytest.approx(0.2) and waiting[-1].service == pytest.approx(0.3)
    assert plain(waiting[-1].words) == "client 1: waited 4.0 ms, answered 6.0 ms later"
    assert other[0].service == pytest.approx(1.0)


def test_settings_have_one_scale_and_cores_one_place() -> None:
    slow = requests(8, 4.0, at_once=8)
    quick = requests(8, 1.0, at_once=2)
    picture = lanes_of(
        ("off", [Sent(**vars(span)) for span in slow]),
        ("limited", [Sent(**vars(span)) for span in quick]),
    )
    first, limited = picture.settings
    assert first.running.top == limited.running.top == 8
    assert first.cores_at == limited.cores_at == 0.25
    assert "at most 8 steps at one time" in first.news
    assert "at most 2 steps at one time" in limited.news


def test_bars_stay_within_the_stretch() -> None:
    spans = [Sent(**vars(span)) for span in requests(32, 9.0, at_once=32, failed=[5, 40])]
    picture = lanes_of(("off", spans))
    bars = [bar for lane in picture.settings[0].lanes for bar in lane.bars]
    assert bars and all(0 <= b.x <= b.start and b.start + b.service <= 1 + 1e-9 for b in bars)
    assert len(bars) <= 400 + 64


def test_of_many_clients_the_first_are_shown_and_that_is_said() -> None:
    spans = [Sent(**vars(span)) for span in requests(50, 9.0, at_once=50)]
    picture = lanes_of(("off", spans))
    assert len(picture.settings[0].lanes) == 32
    assert "the first 32 of 50 clients" in picture.caption


def test_no_request_makes_no_picture() -> None:
    assert request_lanes([("off", [])], load="1 client", cores=2) is None
    assert serving_view(served()).lanes is not None


def test_failed_requests_are_told_apart() -> None:
    view = serving_view(of_all_kinds())
    assert view.lanes is not None and not view.lanes.failed
    third = of_all_kinds().variants[2]
    spans = [Sent(**vars(span)) for span in third.point(MANY, 1).spans]
    picture = lanes_of((third.label, spans))
    assert picture.failed and "failed" in picture.settings[0].news
    assert arrivals(400).label == "400 requests/s"


def test_requests_of_clients_beyond_the_lanes_are_no_fault() -> None:
    few = sent(*((0, at, at, at + 1) for at in range(20)))
    many = sent(*((300 + at, at, at, at + 1) for at in range(20)))
    picture = lanes_of(("all off", few), ("inline", many))
    assert len(picture.settings) == 2 and "no request" not in picture.settings[0].news
    assert lanes_of(("all off", many)).settings[0].lanes

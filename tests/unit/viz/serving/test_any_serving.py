"""Whatever was measured, every outlet says it in finished words."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.served_models import EIGHT, MANY, ONE, arrivals, point, requests, served
from workbench.core.optimizations import Optimizations
from workbench.experiments.serving.points import Load, LoadPoint, RateAtLimit, RateProbe
from workbench.experiments.serving.results import Receipt, ServedVariant, ServingComparison
from workbench.viz.documents import document
from workbench.viz.outlets import fragment_of, text_of
from workbench.viz.serving.view import serving_view

_LOADS = (ONE, EIGHT, MANY, arrivals(40.0), arrivals(12_345.0))
_LABELS = ("off", "a" * 90, "<b>&\u202e", "2 sessions")
# No number that is not one may be said.
_NO_NUMBER = re.compile(r"\b(nan|inf|None|undefined)\b")


@st.composite
def a_point(draw: st.DrawFn, load: Load, rows: int) -> LoadPoint:
    p50 = draw(st.floats(0.001, 50))
    drawn = point(
        load,
        draw(st.floats(0.2, 90_000)),
        p50,
        p50 * draw(st.floats(1, 300)),
        rows=rows,
        failed=draw(st.sampled_from([0, 0, 3])),
        half=draw(st.floats(0, 0.95)),
        first_error=draw(st.sampled_from(["", "bad\n\x1b[31m row"])),
        client_is_limit=draw(st.booleans()),
        spans=requests(load.clients, p50 + 1, at_once=2, seconds=0.05),
    )
    blocks = drawn.blocks[: draw(st.sampled_from([1, 2, 6]))]
    if draw(st.integers(0, 9)) == 0:
        none = {"answered": 0, "percentiles_ns": ()}
        blocks = tuple(type(block)(**{**vars(block), **none}) for block in blocks)
    kept = draw(st.sampled_from([0, 1, len(drawn.spans)]))
    return LoadPoint(**{**_fields(drawn), "blocks": blocks, "spans": drawn.spans[:kept]})


@st.composite
def a_limit(draw: st.DrawFn, rows: int) -> RateAtLimit:
    rates = tuple(draw(st.lists(st.sampled_from([0.0, 900.0, 1000.0]), min_size=1, max_size=5)))
    p99 = draw(st.one_of(st.none(), st.floats(1e4, 1e10)))
    probe = RateProbe(round=0, rate=draw(st.floats(1, 1e5)), p99_ns=p99, kept=p99 is not None)
    return RateAtLimit(
        rows=rows, limit_ns=3e6, rates=rates, probes=(probe,), client_is_limit=draw(st.booleans())
    )


@st.composite
def comparisons(draw: st.DrawFn) -> ServingComparison:
    sizes = draw(st.sampled_from([(0,), (1,), (1, 32)]))
    loads = draw(st.lists(st.sampled_from(_LOADS), min_size=1, max_size=4, unique=True))
    labels = draw(st.lists(st.sampled_from(_LABELS), min_size=1, max_size=4, unique=True))
    searched = draw(st.booleans())
    variants = tuple(
        ServedVariant(
            label=label,
            optimizations=Optimizations(),
            points=tuple(draw(a_point(load, rows)) for rows in sizes for load in loads),
            rates_at_limit=tuple(draw(a_limit(rows)) for rows in sizes) if searched else (),
            steps_at_once=draw(st.sampled_from([0, 1, 2, 8])),
        )
        for label in labels
    )
    difference = draw(st.sampled_from([None, 0.0, 1e-7, 0.5]))
    receipts = tuple(
        Receipt(
            label=label,
            rows=sizes[0],
            requests=16,
            bit_equal=difference == 0.0,
            largest_difference=difference,
            output="score",
        )
        for label in labels[1:]
    )
    environment = draw(st.sampled_from([{}, {"cores": 2}, {"cores": 64, "tensorflow": "2.21.0"}]))
    return served(*variants, receipts=receipts, environment=environment, command="", taken_at="")


@given(comparisons())
def test_every_outlet_has_finished_words_and_places_on_its_axes(
    comparison: ServingComparison,
) -> None:
    view = serving_view(comparison)
    places = [
        place
        for chart in view.charts
        for line in chart.lines
        for mark in line.marks
        for place in (mark.x, mark.x_low, mark.x_high, mark.p50, mark.p99_low, mark.p99_high)
    ]
    places += [row.bar for group in view.throughput.groups for row in group.rows]
    places += [row.high for group in view.throughput.groups for row in group.rows]
    assert all(0 <= place <= 1 for place in places)
    fragment, words = fragment_of(comparison), text_of(comparison)
    shown = re.sub(r"<pre.*?</pre>|<[^>]*>", " ", fragment, flags=re.S)
    assert not _NO_NUMBER.search(shown)
    assert not _NO_NUMBER.search(words.partition("Measure it again:")[0])
    assert "\x1b" not in words
    assert "<b>&" not in fragment
    assert document(comparison)["answer"]


def _fields(drawn: LoadPoint) -> dict[str, object]:
    names = ("load", "rows", "first_error", "client_is_limit")
    return {name: getattr(drawn, name) for name in names}

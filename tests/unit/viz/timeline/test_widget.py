"""The widgets: a still picture of their own, a small state, an answer to a view that asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders.plans import towers
from tests.builders.traces import big_trace, staged_trace
from workbench.core.planning.planner import plan_stages
from workbench.viz.boundary.widget import BoundaryWidget
from workbench.viz.notebook import widget
from workbench.viz.timeline.view import timeline_view
from workbench.viz.timeline.widget import TimelineWidget


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, list[bytes]]]:
    messages: list[tuple[object, list[bytes]]] = []
    monkeypatch.setattr(
        TimelineWidget, "send", lambda _, content, buffers=None: messages.append((content, buffers))
    )
    return messages


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    outputs: list[dict[str, str]] = []
    monkeypatch.setattr("workbench.viz.style.still.display", lambda data, **_: outputs.append(data))
    return outputs


@pytest.mark.parametrize(
    ("widget", "words"),
    [
        (TimelineWidget(staged_trace(), title="By hand"), "Timeline of By hand\nA step takes"),
        (BoundaryWidget(towers()), "5 nodes may run ahead"),
    ],
    ids=["timeline", "boundary"],
)
def test_a_widget_and_its_still_are_two_outputs(
    widget: TimelineWidget | BoundaryWidget, words: str, shown: list[dict[str, str]]
) -> None:
    widget._ipython_display_()
    still, live = shown
    assert still.keys() == {"text/html", "text/plain"}
    assert still["text/html"].startswith(f'<div class="{widget.still}"><div class="wb-static">')
    assert still["text/plain"].startswith(words)
    assert live.keys() == {"application/vnd.jupyter.widget-view+json"}


def test_a_widget_is_made_of_what_can_be_picked_from() -> None:
    assert isinstance(widget(staged_trace()), TimelineWidget)
    assert isinstance(widget(towers()), BoundaryWidget)
    assert isinstance(widget(plan_stages(towers())), BoundaryWidget)
    with pytest.raises(TypeError, match="no widget shows a dict; expected a Trace, a StagePlan or"):
        widget({})  # type: ignore[arg-type]


def test_small_traces_travel_with_the_model_and_large_ones_on_request(
    sent: list[tuple[object, list[bytes]]],
) -> None:
    small = TimelineWidget(staged_trace(20))
    assert 0 < len(small.packed) < 20_000
    large = TimelineWidget(timeline_view(big_trace(60_000)))
    assert large.packed == b""
    assert sent == []
    large._handle_custom_msg({"kind": "data"}, [])
    large._handle_custom_msg({"kind": "something else"}, [])
    assert sent == [({"kind": "data"}, [large.view.columns.buffer()])]


def test_shown_large_traces_are_sent_unasked_unless_asked_before(
    sent: list[tuple[object, list[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[FakeTimer] = []

    class FakeTimer:
        def __init__(self, seconds: float, act: Callable[[], None]) -> None:
            self.act, self.live, self.daemon = act, True, False
            timers.append(self)

        def start(self) -> None:
            assert self.daemon

        def cancel(self) -> None:
            self.live = False

    monkeypatch.setattr("workbench.viz.timeline.widget.threading.Timer", FakeTimer)
    TimelineWidget(staged_trace())._repr_mimebundle_()
    assert timers == []
    large = TimelineWidget(big_trace(60_000))
    large._repr_mimebundle_()
    assert timers[0].live
    assert sent == []
    timers[0].act()
    timers[1].act()
    assert len(sent) == 2
    assert timers[2].live
    large._handle_custom_msg({"kind": "data"}, [])
    assert not timers[2].live
    assert len(sent) == len(timers) == 3


def test_state_of_a_large_trace_stays_small() -> None:
    state = TimelineWidget(big_trace(60_000)).get_state()
    size = sum(len(value) for value in state.values() if isinstance(value, (str, bytes)))
    assert size + len(str(state["header"])) < 150_000


def test_selected_event_is_a_row_of_the_trace() -> None:
    trace = staged_trace(3)
    widget = TimelineWidget(trace)
    assert widget.selected_event == -1
    rows = widget.view.spans.row
    widget.selected = int((rows == 4).argmax())
    assert widget.selected_event == 4
    widget.selected = int((rows == -1).argmax())
    assert widget.selected_event == -1
    assert widget.in_view().equals(widget.view.in_view())

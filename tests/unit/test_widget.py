"""The timeline's widget: three forms, a small state, an answer to a view that asks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.builders.traces import big_trace, staged_trace
from workbench.viz.timeline import timeline_view
from workbench.viz.widget import TimelineWidget


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, list[bytes]]]:
    messages: list[tuple[object, list[bytes]]] = []
    monkeypatch.setattr(
        TimelineWidget, "send", lambda _, content, buffers=None: messages.append((content, buffers))
    )
    return messages


def test_three_forms() -> None:
    data, _ = TimelineWidget(staged_trace(), title="By hand")._repr_mimebundle_()
    assert data["text/plain"].startswith("Timeline of By hand\nA step takes")
    assert data["text/html"].startswith('<div class="wb-static">')
    assert "application/vnd.jupyter.widget-view+json" in data


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
    assert sent == [({"kind": "data"}, [large.view.buffer()])]


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

    monkeypatch.setattr("workbench.viz.widget.threading.Timer", FakeTimer)
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

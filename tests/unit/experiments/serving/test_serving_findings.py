"""What holds a served model up, from measured points."""

from __future__ import annotations

from typing import Any

from tests.builders.served_models import (
    EIGHT,
    FAST_LABEL,
    MANY,
    ONE,
    at_limit,
    baseline,
    fast,
    point,
    served,
)
from workbench.experiments.serving.findings import ServingFinding, find
from workbench.experiments.serving.results import ServedVariant


def plain(words: str) -> str:
    return words.replace("\u00a0", " ").replace("\u2009", " ")


def of_points(*points: Any, **changes: Any) -> dict[str, ServingFinding]:
    """The findings of a baseline with these points, by kind."""
    comparison = served(baseline(points=points, rates_at_limit=(), **changes))
    return {finding.key: finding for finding in find(comparison)}


def test_steps_that_share_cores_make_the_p99_long() -> None:
    found = [one for one in find(served()) if one.key == "more_steps_than_cores"]
    assert [one.label for one in found] == ["off"]
    assert plain(found[0].evidence) == (
        "With 32 clients on 2 cores the p99 is 62.0 ms, 3.2 times the mean, with one client 1.44 "
        "times. Steps that share a core hold each other up."
    )
    assert plain(found[0].mend) == (
        "Let 2 steps run at one time, in the order of arrival: steps_at_once=2. Measured here: p99 "
        f"12.1 ms by {FAST_LABEL}."
    )
    assert found[0].toggle == "steps_at_once"


def test_a_limit_of_steps_that_is_on_is_not_asked_for_again() -> None:
    tail = (point(ONE, 900, 1.05, 1.6), point(MANY, 1640, 17, 62))
    assert "more_steps_than_cores" in of_points(*tail)
    assert "more_steps_than_cores" in of_points(*tail, steps_at_once=8)
    assert "more_steps_than_cores" not in of_points(*tail, steps_at_once=2)


def test_a_tail_that_one_client_has_too_is_not_of_many_steps() -> None:
    tail = (point(ONE, 900, 1.05, 3.2), point(MANY, 1640, 17, 62))
    assert "more_steps_than_cores" not in of_points(*tail)


def test_requests_in_one_queue_leave_cores_without_work() -> None:
    found = of_points(
        point(ONE, 400, 2.4, 3.0, server_us=1200),
        point(EIGHT, 410, 19.0, 22.0, server_us=1200),
        point(MANY, 412, 77.0, 84.0, server_us=1200),
    )["one_queue"]
    assert plain(found.evidence) == (
        "With 32 clients it answers 412 requests/s, 1.00 times as many as with 8 clients, while "
        "0.5 of 2 cores are at work."
    )
    assert found.toggle == "sessions"


def test_no_queue_is_claimed_where_the_cores_are_busy_or_the_rate_grows() -> None:
    busy = (point(ONE, 1600, 0.6, 0.9), point(MANY, 1640, 19, 24, server_us=1150))
    assert "one_queue" not in of_points(*busy)
    grows = (
        point(ONE, 400, 2.4, 3.0, server_us=1200),
        point(MANY, 500, 60.0, 70.0, server_us=1200),
    )
    assert "one_queue" not in of_points(*grows)
    client = (
        point(ONE, 400, 2.4, 3.0, server_us=1200),
        point(MANY, 402, 60.0, 70.0, server_us=1200, client_is_limit=True),
    )
    assert set(of_points(*client)) == {"client", "hand_over"}


def test_a_limit_below_the_cores_is_itself_the_queue() -> None:
    points = (point(ONE, 400, 2.4, 3.0, server_us=1200), point(MANY, 405, 77, 84, server_us=1200))
    found = of_points(*points, steps_at_once=1)["one_queue"]
    assert found.toggle == "steps_at_once" and "steps_at_once is 1" in found.mend


def test_cpu_that_grows_with_the_clients_is_contention() -> None:
    found = {one.key: one for one in find(served()) if one.label == "off"}["contention"]
    assert plain(found.evidence) == (
        "With 32 clients a request takes 1.2 ms of CPU, 1.85 times as much as with one client "
        "(0.62 ms)."
    )
    same = (point(ONE, 900, 1.1, 1.6, server_us=1000), point(MANY, 1900, 17, 21, server_us=1200))
    assert "contention" not in of_points(*same)


def test_time_without_a_core_at_work_is_handed_over() -> None:
    found = {one.key: one for one in find(served()) if one.label == "off"}["hand_over"]
    assert plain(found.evidence) == (
        "With one client a request takes 1.1 ms, and a core is at work for 0.64 ms of it. In the "
        "other 42 % one thread wakes another, or an op waits."
    )
    assert plain(found.mend).endswith(f"Measured here: 0.57 ms by {FAST_LABEL}.")
    busy = of_points(point(ONE, 1000, 1.0, 1.2, server_us=900))
    assert "hand_over" not in busy


def test_a_client_that_runs_the_steps_itself_hands_nothing_over() -> None:
    slow = (point(ONE, 900, 1.05, 1.6, server_us=300),)
    assert "hand_over" in of_points(*slow)
    assert [one.key for one in find(served(fast(points=slow, rates_at_limit=())))] == []


def test_requests_that_fail_come_first_with_their_error() -> None:
    found = find(
        served(baseline(points=(point(ONE, 900, 1, 2, failed=27, first_error="no row 7"),)))
    )
    assert found[0].key == "failed"
    assert plain(found[0].evidence) == (
        "27 of 5 427 requests failed (0.5 %); rates and latencies are of the others. The first "
        "error: no row 7"
    )


def test_clients_that_cannot_send_faster_are_said() -> None:
    by_search = baseline(rates_at_limit=(at_limit(900, client_is_limit=True),))
    found = {one.key: one for one in find(served(by_search))}["client"]
    assert found.evidence == "At the highest rates of the search the clients came late."
    by_load = of_points(point(EIGHT, 5000, 1.5, 2.0, server_us=70, client_is_limit=True))["client"]
    assert plain(by_load.evidence) == (
        "With 8 clients the clients sent 5 000 requests/s. A request takes 20 µs of their CPU, and "
        "70 µs of the server's."
    )


def test_the_strongest_number_of_rows_is_told() -> None:
    small = (point(ONE, 900, 1.05, 1.6), point(MANY, 1640, 17, 62))
    large = (point(ONE, 300, 3.1, 3.5, rows=32), point(MANY, 500, 60, 400, rows=32))
    found = of_points(*small, *large)["more_steps_than_cores"]
    assert plain(found.evidence).startswith("Requests of 32 rows: With 32 clients on 2 cores")


def test_a_healthy_model_has_no_finding() -> None:
    points = (point(ONE, 1000, 1.0, 1.1), point(MANY, 1950, 16.4, 19.0))
    healthy = ServedVariant(label="off", optimizations=baseline().optimizations, points=points)
    assert find(served(healthy)) == ()


def test_a_load_that_is_not_steady_shows_that_alone() -> None:
    tail = (
        point(ONE, 900, 1.05, 1.6, server_us=300, half=0.01),
        point(MANY, 1640, 17, 62, half=0.6),
    )
    found = of_points(*tail)
    assert set(found) == {"unsteady", "hand_over"}
    assert plain(found["unsteady"].evidence).startswith("32 clients: the rounds differ so much")
    noisy = (point(ONE, 900, 1.05, 1.6, server_us=300, half=0.6),)
    assert set(of_points(*noisy)) == {"unsteady"}

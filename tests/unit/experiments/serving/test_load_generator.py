"""Clients send as the load says, and no latency hides what a slow answer delays."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest

from tests.builders.serving import FakeClock, FakeServer, lindley_ns
from workbench.experiments.serving.load.arrivals import poisson_arrivals
from workbench.experiments.serving.load.generator import run_clients, run_open_loop
from workbench.experiments.serving.load.step_limit import StepLimit
from workbench.experiments.serving.load.summary import block_of, percentiles, spans_of


def md1_latency_ns(share: float, load: float, service_ns: float) -> float:
    """A percentile of latencies where arrivals are Poisson and a service takes one time."""
    rate = load / service_ns

    def waits_less(time_ns: float) -> float:
        total = 0.0
        for k in range(int(time_ns / service_ns) + 1):
            x = rate * (time_ns - k * service_ns)
            total += (-x) ** k / math.factorial(k) * math.exp(x)
        return (1 - load) * total

    low, high = 0.0, 60.0 * service_ns
    if waits_less(0.0) >= share:
        return service_ns
    # The sum cancels for long waits; these are short.
    high = 15.0 * service_ns
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if waits_less(middle) < share else (low, middle)
    return service_ns + high


def test_an_open_loop_waits_as_lindley_says():
    arrivals = poisson_arrivals(rate=400.0, seconds=25.0, seed=3)
    services = np.random.default_rng(4).lognormal(math.log(2e6), 0.5, len(arrivals)).astype(int)
    clock = FakeClock()
    server = FakeServer(clock, lambda number: int(services[number]))
    sent = run_open_loop([server], arrivals, clock=clock)
    measured = sent.end_ns - sent.start_ns
    expected = lindley_ns(arrivals, measured)
    latencies = sent.end_ns - sent.arrival_ns
    assert np.array_equal(measured, services)
    for share in (50, 90, 99, 99.9):
        assert np.percentile(latencies, share) == pytest.approx(
            np.percentile(expected, share), rel=0.02
        )


@pytest.mark.parametrize("load", [0.5, 0.7, 0.85])
def test_an_open_loop_is_the_queue_of_the_theory(load):
    service_ns, clock = 2_000_000, FakeClock()
    rate = load / (service_ns / 1e9)
    arrivals = poisson_arrivals(rate, 60_000 / rate, seed=11)
    sent = run_open_loop([FakeServer(clock, lambda _: service_ns)], arrivals, clock=clock)
    block = block_of(sent, 60_000 / rate, is_open=True)
    assert len(sent.end_ns) == 60_000 and not block.failed
    for at, share in ((0, 0.5), (2, 0.99)):
        theory = md1_latency_ns(share, load, service_ns)
        assert block.percentiles_ns[at] == pytest.approx(theory, rel=0.1)


def test_one_slow_answer_delays_all_that_arrive_meanwhile():
    clock = FakeClock()
    server = FakeServer(clock, lambda number: 500_000_000 if number == 10 else 1_000)
    arrivals = np.arange(1, 101, dtype=np.int64) * 1_000_000
    sent = run_open_loop([server], arrivals, clock=clock)
    latencies = sent.end_ns - sent.arrival_ns
    # Every one of the 89 behind it was due before its answer.
    assert (latencies[11:] > 400_000_000).all()
    assert (latencies[:10] < 2_000).all()


def test_arrivals_are_given_up_when_the_server_is_far_behind():
    clock = FakeClock()
    arrivals = poisson_arrivals(rate=1000.0, seconds=1.0, seed=0)
    sent = run_open_loop([FakeServer(clock, lambda _: 100_000_000)], arrivals, clock=clock)
    assert sent.unsent == len(arrivals) - len(sent.end_ns) > 900
    assert block_of(sent, 1.0, is_open=True).failed == sent.unsent


def test_two_rates_have_the_same_gaps():
    slow, fast = (poisson_arrivals(rate, 1000 / rate, seed=7) for rate in (100.0, 400.0))
    assert len(slow) == len(fast) == 1000
    assert np.allclose(slow / 4, fast, atol=1)
    assert np.mean(np.diff(slow)) == pytest.approx(1e7, rel=0.1)


class Sleeps:
    """A sender that sleeps, and notes how many do at one time."""

    def __init__(self, running: list[int], most: list[int], lock: threading.Lock) -> None:
        self._running, self._most, self._lock = running, most, lock

    def send(self, number: int) -> bool:
        with self._lock:
            self._running[0] += 1
            self._most.append(self._running[0])
        time.sleep(0.002)
        with self._lock:
            self._running[0] -= 1
        return number % 10 != 3


def sleepers(count: int) -> tuple[list[Sleeps], list[int]]:
    running, most, lock = [0], [0], threading.Lock()
    return [Sleeps(running, most, lock) for _ in range(count)], most


def test_clients_wait_for_their_answers_and_failures_are_counted():
    senders, most = sleepers(4)
    sent = run_clients(senders, 0.3)
    assert max(most) <= 4
    for client in range(4):
        own = sent.client == client
        assert own.sum() > 5
        assert (sent.start_ns[own][1:] >= sent.end_ns[own][:-1]).all()
    block = block_of(sent, 0.3, is_open=False)
    assert block.failed and block.answered > block.failed
    assert block.per_s == pytest.approx(block.answered / block.seconds)
    spans = spans_of(sent)
    assert any(span.failed for span in spans)
    assert all(span.arrival_ns <= span.start_ns < span.end_ns for span in spans)


def test_a_limit_lets_so_many_steps_run_at_one_time():
    senders, most = sleepers(8)
    sent = run_clients(senders, 0.2, limit=StepLimit(2))
    assert max(most) == 2
    # Those that wait do so from their arrival on.
    assert np.median(sent.start_ns - sent.arrival_ns) > 3e6


def test_who_waits_longest_is_next():
    limit, order, threads = StepLimit(1), [], []
    limit.enter()

    def wait(number: int) -> None:
        limit.enter()
        order.append(number)
        limit.leave()

    for number in range(5):
        threads.append(threading.Thread(target=wait, args=(number,)))
        threads[-1].start()
        while len(limit._waiting) <= number:
            time.sleep(0.001)
    limit.leave()
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_an_error_of_a_sender_ends_the_block():
    class Broken:
        def send(self, number: int) -> bool:
            raise ValueError("no such request")

    with pytest.raises(ValueError, match="no such request"):
        run_clients([Broken()], 0.1)


def test_percentiles_are_latencies_that_occurred():
    latencies = np.arange(1, 1001)
    assert percentiles(latencies) == (500.0, 900.0, 990.0, 999.0)
    assert percentiles(latencies[:0]) == ()

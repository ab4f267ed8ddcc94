"""Sends requests as a load says, each client in a thread of its own, and notes when and how long.

In an open loop the moments of arrival are fixed before the first request. A thread takes the next
arrival, waits for its moment and sends. Where all threads are busy the arrival waits, and its
latency counts that. So a slow answer delays no later arrival on paper (no coordinated omission).
"""

from __future__ import annotations

import array
import contextlib
import dataclasses
import gc
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from workbench.experiments.serving.load.clock import Clock, RealClock, wake_in_time
from workbench.experiments.serving.load.step_limit import NoLimit, StepLimit

# Of a block: its begin, in which clients come up to speed, does not count.
DROPPED = 0.1
# An open loop that is so many times its length behind sends no more.
_LONGEST = 4.0


class Sender(Protocol):
    """What one client sends requests with; no two threads share one."""

    def send(self, number: int) -> bool:
        """Sends a request of the pool, by its number; returns whether it was answered."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Sent:
    """The requests of one block, by the time of their arrival.

    Attributes:
      client: int64 [requests], number of the thread that sent it.
      arrival_ns, start_ns, end_ns: int64 [requests], on the clock.
      answered: bool [requests].
      begin_ns, end_of_block_ns: when the block began, and when its last answer was there.
      unsent: arrivals of an open loop that were given up.
      client_cpu_ns: CPU of the client threads outside of sending.
      all_cpu_ns: CPU of the whole process.
    """

    client: np.ndarray
    arrival_ns: np.ndarray
    start_ns: np.ndarray
    end_ns: np.ndarray
    answered: np.ndarray
    begin_ns: int
    end_of_block_ns: int
    unsent: int
    client_cpu_ns: int
    all_cpu_ns: int


class _Notes:
    """What one client notes: four numbers for each request, one after the other."""

    def __init__(self) -> None:
        self.times = array.array("q")
        self.outside_cpu_ns = 0
        self.error: BaseException | None = None


def run_clients(
    senders: Sequence[Sender],
    seconds: float,
    *,
    limit: StepLimit | NoLimit | None = None,
    clock: Clock | None = None,
) -> Sent:
    """Every client sends a request as soon as it has the answer of the one before.

    Args:
      senders: one for each client.
      seconds: after which no client begins another request.
      limit: of steps that run at one time; None is none.
      clock: None is the machine's.
    """
    clock, limit = clock or RealClock(), limit or NoLimit()
    until = 0

    def run(client: int, notes: _Notes) -> None:
        number = client
        while True:
            arrival = clock.now_ns()
            if arrival >= until:
                return
            _send(senders[client], number, arrival, limit, clock, notes)
            number += len(senders)

    with _block(len(senders), run, clock) as block:
        until = block.begin_ns + round(seconds * 1e9)
    return block.sent(unsent=0)


def run_open_loop(
    senders: Sequence[Sender],
    arrivals: np.ndarray,
    *,
    limit: StepLimit | NoLimit | None = None,
    clock: Clock | None = None,
) -> Sent:
    """Requests arrive at moments that are fixed; an answer is waited for by its thread alone.

    Args:
      senders: one for each thread, the most requests that run at one time.
      arrivals: int64 ns from the begin, in order.
      limit, clock: as of `run_clients`.
    """
    clock, limit = clock or RealClock(), limit or NoLimit()
    moments: list[int] = []
    take = itertools.count()
    give_up = 0

    def run(client: int, notes: _Notes) -> None:
        for number in take:
            if number >= len(moments):
                return
            arrival = moments[number]
            now = clock.now_ns()
            if now > give_up:
                return
            if now < arrival:
                clock.sleep_until_ns(arrival)
            _send(senders[client], number, arrival, limit, clock, notes)

    with _block(len(senders), run, clock) as block:
        moments.extend((arrivals + block.begin_ns).tolist())
        give_up = block.begin_ns + round(_LONGEST * int(arrivals[-1]) + 1e9)
    return block.sent(unsent=len(moments) - block.count())


def _send(
    sender: Sender,
    number: int,
    arrival: int,
    limit: StepLimit | NoLimit,
    clock: Clock,
    notes: _Notes,
) -> None:
    """Sends one request and notes it; what the turn and the call take is the server's."""
    cpu = clock.thread_cpu_ns()
    limit.enter()
    start = clock.now_ns()
    try:
        answered = sender.send(number)
    finally:
        end = clock.now_ns()
        limit.leave()
    notes.outside_cpu_ns -= clock.thread_cpu_ns() - cpu
    notes.times.extend((arrival, start, end, answered))


class _Block:
    """Threads that wait for their begin, and what they noted once they have ended."""

    def __init__(self, clients: int, run: Callable[[int, _Notes], None], clock: Clock) -> None:
        self.begin_ns, self._end_ns = 0, 0
        self._cpu_ns = 0
        self._clock, self._run = clock, run
        self._notes = [_Notes() for _ in range(clients)]
        self._go = threading.Event()
        self._ready = threading.Barrier(clients + 1)
        self._threads = [
            threading.Thread(target=self._client, args=(number,), daemon=True)
            for number in range(clients)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        self._ready.wait()
        self._cpu_ns = self._clock.process_cpu_ns()
        self.begin_ns = self._clock.now_ns()

    def run(self) -> None:
        self._go.set()
        for thread in self._threads:
            thread.join()
        self._end_ns = self._clock.now_ns()
        self._cpu_ns = self._clock.process_cpu_ns() - self._cpu_ns
        for notes in self._notes:
            if notes.error is not None:
                raise notes.error

    def _client(self, number: int) -> None:
        notes = self._notes[number]
        wake_in_time()
        self._ready.wait()
        self._go.wait()
        cpu = self._clock.thread_cpu_ns()
        try:
            self._run(number, notes)
        except BaseException as error:
            notes.error = error
        notes.outside_cpu_ns += self._clock.thread_cpu_ns() - cpu

    def count(self) -> int:
        return sum(len(notes.times) for notes in self._notes) // 4

    def sent(self, unsent: int) -> Sent:
        """What all clients noted."""
        tables = [np.array(notes.times, np.int64).reshape(-1, 4) for notes in self._notes]
        rows = np.concatenate(tables)
        clients = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        order = np.argsort(rows[:, 0], kind="stable")
        rows = rows[order]
        return Sent(
            client=clients[order],
            arrival_ns=rows[:, 0],
            start_ns=rows[:, 1],
            end_ns=rows[:, 2],
            answered=rows[:, 3].astype(bool),
            begin_ns=self.begin_ns,
            end_of_block_ns=self._end_ns,
            unsent=unsent,
            client_cpu_ns=sum(notes.outside_cpu_ns for notes in self._notes),
            all_cpu_ns=self._cpu_ns,
        )


@contextlib.contextmanager
def _block(clients: int, run: Callable[[int, _Notes], None], clock: Clock) -> Iterator[_Block]:
    """Starts the threads, lets the caller set when they end, then runs them to their end."""
    block = _Block(clients, run, clock)
    collects = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        block.start()
        yield block
        block.run()
    finally:
        if collects:
            gc.enable()

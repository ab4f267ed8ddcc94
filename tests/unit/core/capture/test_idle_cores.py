"""Whether the machine packs, told on a machine whose clock and scheduler the test makes up."""

from __future__ import annotations

import threading

import pytest

from workbench.core.capture import idle_cores

PULSE_S = 0.0015


class Machine:
    """A clock and two cores.

    Two threads that worked less than half of the last 50 ms take `packed` times as long as one
    alone, since the kernel puts them on one core; while `others` are busy they always take twice
    as long.
    """

    def __init__(self, packed: float = 1.0, others: bool = False) -> None:
        self.packed = packed
        self.others = others
        self.now = 1.0
        self._worked: list[tuple[float, float]] = []
        self._both = threading.Barrier(2, timeout=20)

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def hashed(self, data: bytes) -> float:
        begun = self.now
        if not any(thread.name == "second-core" for thread in threading.enumerate()):
            self._work(1.0)
        else:
            if self._both.wait() == 0:
                self._work(2.0 if self.others else self.packed if self._mostly_rests() else 1.02)
            self._both.wait()
        return self.now - begun

    def _work(self, factor: float) -> None:
        self._worked.append((self.now, self.now + factor * PULSE_S))
        self.now += factor * PULSE_S

    def _mostly_rests(self) -> bool:
        since = self.now - 0.05
        return sum(end - max(begin, since) for begin, end in self._worked if end > since) < 0.025


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch):
    """Makes this process run on a machine."""
    monkeypatch.setattr(idle_cores, "_known", [])
    monkeypatch.setattr(idle_cores, "_data", bytes)
    monkeypatch.setattr(idle_cores, "usable_cores", lambda: 2)

    def use(machine: Machine) -> Machine:
        monkeypatch.setattr(idle_cores, "time", machine)
        monkeypatch.setattr(idle_cores, "_hashed", machine.hashed)
        return machine

    return use


@pytest.mark.parametrize(("packed", "packs"), [(1.05, False), (1.4, False), (1.95, True)])
def test_two_threads_after_a_rest(on, packed: float, packs: bool):
    machine = on(Machine(packed))
    assert idle_cores.packs_when_idle() is packs
    known_at = machine.now
    assert idle_cores.packs_when_idle() is packs
    assert machine.now == known_at  # what is known is not measured again


def test_a_busy_machine_tells_nothing_and_is_asked_again(on):
    on(Machine(1.95, others=True))
    assert idle_cores.packs_when_idle() is None
    on(Machine(1.95))
    assert idle_cores.packs_when_idle() is True


def test_one_core_has_nothing_to_pack(on, monkeypatch: pytest.MonkeyPatch):
    machine = on(Machine(2.0))
    monkeypatch.setattr(idle_cores, "usable_cores", lambda: 1)
    assert idle_cores.packs_when_idle() is False
    assert machine.now == 1.0


def test_a_pulse_is_the_work_of_both_threads(monkeypatch: pytest.MonkeyPatch):
    """Of a thread that does not work at the same time the other one would wait in vain."""
    both, hashed, threads = threading.Barrier(2, timeout=20), idle_cores._hashed, set()

    def together(data: bytes) -> float:
        threads.add(threading.get_ident())
        both.wait()
        return hashed(data)

    data = bytes(4 << 20)
    alone = min(hashed(data) for _ in range(4))
    monkeypatch.setattr(idle_cores, "_hashed", together)
    lasted = idle_cores._pulses(data, 10, 0.0)
    assert len(lasted) == 10
    assert len(threads) == 2
    assert min(lasted) > alone / 2

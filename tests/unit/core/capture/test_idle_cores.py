"""Whether the machine packs, told from pulses that the test makes up."""

from __future__ import annotations

import pytest

from workbench.core.capture import idle_cores


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(idle_cores, "_known", [])
    monkeypatch.setattr(idle_cores.os, "cpu_count", lambda: 2)
    monkeypatch.setattr(idle_cores, "_hashed", lambda data: 1.0)
    monkeypatch.setattr(idle_cores, "_data", bytes)
    monkeypatch.setattr(idle_cores.time, "sleep", lambda seconds: None)


def pulses(monkeypatch: pytest.MonkeyPatch, *, busy: float, rested: float) -> list[float]:
    asked: list[float] = []

    def measured(data: bytes, count: int, rest_s: float) -> list[float]:
        asked.append(rest_s)
        return [rested if rest_s else busy] * count

    monkeypatch.setattr(idle_cores, "_pulses", measured)
    return asked


@pytest.mark.parametrize(("rested", "packs"), [(1.05, False), (1.4, False), (1.95, True)])
def test_two_threads_after_a_rest(monkeypatch: pytest.MonkeyPatch, rested: float, packs: bool):
    asked = pulses(monkeypatch, busy=1.02, rested=rested)
    assert idle_cores.packs_when_idle() is packs
    assert idle_cores.packs_when_idle() is packs
    assert len(asked) == 2  # what is known is not measured again


def test_a_busy_machine_tells_nothing_and_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    asked = pulses(monkeypatch, busy=1.9, rested=1.9)
    assert idle_cores.packs_when_idle() is None
    assert asked == [0.0] * 2
    pulses(monkeypatch, busy=1.0, rested=1.9)
    assert idle_cores.packs_when_idle() is True


def test_one_core_has_nothing_to_pack(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(idle_cores.os, "cpu_count", lambda: 1)
    asked = pulses(monkeypatch, busy=1.0, rested=2.0)
    assert idle_cores.packs_when_idle() is False
    assert not asked


def test_real_pulses_take_time():
    lasted = idle_cores._pulses(b"", 10, 0.0)
    assert len(lasted) == 10
    assert all(each >= 0 for each in lasted)

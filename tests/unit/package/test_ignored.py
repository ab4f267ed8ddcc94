"""What is accepted and has no effect warns once, by its name."""

from __future__ import annotations

import pytest

from workbench import ignored


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ignored, "_warned", set())


def test_each_parameter_warns_once(caplog):
    for value in (1, 2):
        ignored.warn_ignored("f(x)", value, "there is no x")
    ignored.warn_ignored("f(y)", "z", "there is no y")
    assert caplog.messages == [
        "f(x) = 1 has no effect: there is no x",
        "f(y) = 'z' has no effect: there is no y",
    ]

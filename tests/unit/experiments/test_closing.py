"""Sessions whose close takes longer than anybody should wait."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from workbench.experiments.worker.steps import closing
from workbench.experiments.worker.steps.closing import free_in_background


def test_what_is_freed_late_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closing, "_FREED_S", 0.05)
    freed, done = threading.Event(), threading.Event()

    def close() -> None:
        freed.wait(30)
        done.set()

    session = SimpleNamespace(close=close)
    free_in_background(session)
    began_s = time.monotonic()
    session.close()
    assert time.monotonic() - began_s < 10 and not done.is_set()
    freed.set()
    assert done.wait(10)


def test_an_error_of_a_close_is_raised() -> None:
    def close() -> None:
        raise RuntimeError("no")

    session = SimpleNamespace(close=close)
    free_in_background(session)
    with pytest.raises(RuntimeError, match="no"):
        session.close()

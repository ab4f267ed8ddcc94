"""When, where and of which commit a result is, as a report says it."""

from __future__ import annotations

import pytest

from workbench.viz.report_page.facts import date_words, facts_of


def test_what_is_known_is_said_in_order() -> None:
    environment = {
        "measured": "2026-11-29T09:30+02:00",
        "host": "build-7",
        "cores": 1,
        "tensorflow": "2.21.0",
        "project": "ranker 1a2b3c4d5e, changed since",
    }
    assert facts_of(environment) == (
        "2026-11-29 07:30 UTC",
        "on build-7",
        "1 core",
        "TensorFlow 2.21.0",
        "project ranker 1a2b3c4d5e, changed since",
    )
    assert facts_of({"cores": 8}) == ("8 cores",)
    assert facts_of({}) == ()


@pytest.mark.parametrize("moment", ["", "yesterday", "2026-13-01"])
def test_what_is_no_moment_has_no_words(moment: str) -> None:
    assert date_words(moment) == ""

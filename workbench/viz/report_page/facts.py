"""When, where and of which commit a result is, in words."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any


def facts_of(environment: Mapping[str, Any]) -> tuple[str, ...]:
    """Date, host, machine and commit, as far as they are known."""
    cores = environment.get("cores")
    facts = [
        date_words(str(environment.get("measured", ""))),
        f"on {environment['host']}" if environment.get("host") else "",
        f"{cores} core{'s' * (cores != 1)}" if cores else "",
        f"TensorFlow {environment['tensorflow']}" if environment.get("tensorflow") else "",
        f"project {environment['project']}" if environment.get("project") else "",
    ]
    return tuple(fact for fact in facts if fact)


def date_words(moment: str) -> str:
    """A moment of ISO 8601 as "2026-11-29 08:12 UTC"; "" where it is none."""
    try:
        when = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return ""
    return f"{when.astimezone(datetime.UTC):%Y-%m-%d %H:%M} UTC"

"""The kinds of programs: how each is drawn and checked, and what differs where one fails."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from tests.fuzz import functions, graphs, keras_models
from tests.fuzz.compare import Difference
from tests.fuzz.draw import draw
from tests.fuzz.result import Result

DRAWS: Mapping[str, Callable[[int], Any]] = {
    "fused": functools.partial(draw, "fused"),
    "served": lambda seed: dataclasses.replace(draw("fused", seed), source="placeholder"),
    "smart": functools.partial(draw, "smart"),
    "function": functools.partial(draw, "function"),
    "keras": keras_models.draw,
}
CHECKS: Mapping[str, Callable[[Any], Result]] = {
    "fused": graphs.check,
    "served": functools.partial(graphs.check, served=True),
    "smart": functools.partial(graphs.check, smart=True),
    "function": functions.check,
    "keras": keras_models.check,
}


def check(kind: str, program: Any) -> Result:
    """Runs a program both ways; what the test itself cannot do is a difference, too."""
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
    try:
        return CHECKS[kind](program)
    except Exception as error:
        result = Result(program=program)
        result.add("test", "", f"{type(error).__name__}: {error}"[:500])
        return result


def signature(difference: Difference) -> str:
    """What differences of one cause often have in common: no numbers, and no values."""
    kept = re.sub(r"\d+", "", f"{difference.where} {difference.kind} {difference.name}")
    kept = re.sub(r"[._:]+(?=\W|$)", "", kept)
    if difference.kind in ("value", "order"):
        kept = kept.split("/")[0]
    if difference.kind in ("error", "plan", "test", "process", "edit"):
        kept += " " + re.sub(r"'[^']*'|\"[^\"]*\"|[\d.-]+|\[.*?\]", "", difference.text)[:90]
    return " ".join(kept.split())

"""Results as documents: JSON of known fields, which docs/scripts.md lists."""

from __future__ import annotations

import functools
import json
import math
import re
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.builders import searches
from tests.builders.comparisons import comparison, every_toggle_comparison
from tests.builders.critical_paths import three_steps
from tests.builders.doc_examples import HOME
from tests.builders.predictions import every_toggle
from tests.builders.serving import serving_comparison
from workbench.experiments.measurement.statistics import Interval
from workbench.experiments.regression.gate import gate
from workbench.experiments.regression.rerun import measured_again
from workbench.viz.documents import document, plain_values

PAGE = (HOME / "docs" / "scripts.md").read_text()


@functools.cache
def results() -> dict[str, Any]:
    """A value of each kind, by the name of the kind."""
    saved = every_toggle_comparison(three_steps(), three_steps())
    return {
        "comparison": saved,
        "findings": wb.findings(three_steps()),
        "compared findings": wb.findings(saved),
        "critical path": wb.critical_path(three_steps()),
        "predictions": every_toggle(),
        "search": searches.search(),
        "gate": gate(comparison(), 0.03),
        "trace": three_steps(),
        "measured again": measured_again(comparison().ratios, comparison().ratios)[0],
        "serving": serving_comparison(),
    }


def fields_on_page(kind: str) -> set[str]:
    """The fields that the page lists for a kind."""
    (row,) = re.findall(rf"^\| `{kind}` \|[^|]*\|(.*)\|$", PAGE, re.M)
    return set(re.findall(r"`(\w+)`", row))


KINDS = (
    *("comparison", "compared findings", "critical path", "findings", "gate", "measured again"),
    *("predictions", "search", "serving", "trace"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_json_with_the_fields_on_the_page(kind):
    found = document(results()[kind])
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found.pop("kind") == kind
    if kind == "compared findings":
        (first, *_) = found["variants"]
        assert set(first) == fields_on_page("findings") | {"label", "gone"}
    elif kind == "measured again":
        assert set(found) == (fields_on_page("rerun") - {"variants"}) | {"label"}
    else:
        assert set(found) == fields_on_page(kind)


def test_a_finding_has_the_fields_on_the_page():
    for each in document(wb.findings(three_steps()))["findings"]:
        assert set(each) == fields_on_page("finding")


def test_numbers_are_those_of_the_result():
    found = comparison()
    written = document(found)
    for variant, each in zip(found.variants, written["variants"], strict=True):
        assert each["label"] == variant.label
        assert each["steps_per_s"]["value"] == variant.steps_per_s
    (ratio,) = (each["ratio"] for each in written["variants"] if each["ratio"])
    assert Interval(**{name: ratio[name] for name in ("value", "low", "high")}) == Interval(
        value=found.ratios[0].ratio, low=found.ratios[0].low, high=found.ratios[0].high
    )


@pytest.mark.parametrize("answer", ["comparison", "findings", "critical path", "predictions"])
def test_an_answer_is_one_line_with_usual_spaces(answer):
    said = document(results()[answer])["answer"]
    assert said and "\n" not in said and "\u00a0" not in said


def test_what_is_no_number_of_json_is_null():
    odd = {"a": math.nan, "b": [np.float32(math.inf), np.int64(3)], "c": (True, None, "x")}
    assert plain_values(odd) == {"a": None, "b": [None, 3], "c": [True, None, "x"]}


def test_another_type_is_refused():
    with pytest.raises(TypeError, match="no document of a object"):
        document(object())

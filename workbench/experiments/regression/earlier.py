"""Earlier results: what was measured and found, as a report or a saved comparison tells it."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import DataError
from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.statistics import Verdict
from workbench.experiments.program.configuration import Configuration, configuration_from
from workbench.files.saved_values import json_of, read_file, shown, value_of

# Of the element of a report that holds them.
ELEMENT_ID = "wb-configuration"
_FORMAT = 1
_ELEMENT = re.compile(
    rf'<script type="application/json" id="{ELEMENT_ID}">(?P<text>[^<]*)(?P<end></script>)?'
)
_LARGEST_BYTES = 64 << 20
_MOST_COMPARISONS = 64


@dataclasses.dataclass(frozen=True, kw_only=True)
class Earlier:
    """One comparison of another day.

    Attributes:
      configuration: what measures it again.
      ratios: what was found.
      environment: what it ran on.
    """

    configuration: Configuration
    ratios: tuple[Ratio, ...]
    environment: dict[str, Any]


def earlier_results(path: Path) -> list[Earlier]:
    """What a report or a directory of results tells. Nothing in it is run.

    Raises:
      DataError: it cannot be read, is damaged, of a newer version, or has no configuration.
    """
    try:
        content = read_file(path, _LARGEST_BYTES)
    except DataError as error:
        raise DataError(f"{path}: cannot be read: {error}; give a report") from None
    element = _ELEMENT.search(content.decode("utf-8", "replace"))
    if element is None:
        raise DataError(
            f"{path}: holds no configuration; give a report of this version of Workbench or newer, "
            "or measure again with the command at the end of the page"
        )
    if not element["end"]:
        raise DataError(f"{path}: ends in the middle of its configuration; copy it again")
    try:
        document = json_of(element["text"])
    except DataError as error:
        raise DataError(f"{path}: its configuration is damaged: {error}") from None
    try:
        return _from_document(document)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def earlier_of(comparison: Comparison) -> Earlier:
    """What a saved comparison tells.

    Raises:
      DataError: it has no configuration, or a damaged one.
    """
    document = comparison.settings.get("configuration")
    if document is None:
        raise DataError(
            f"the comparison of {comparison.program!r} was saved without a configuration; measure "
            f"again with: {comparison.command}"
        )
    try:
        configuration = configuration_from(document)
    except DataError as error:
        raise DataError(f"the comparison of {comparison.program!r}: {error}") from None
    return Earlier(
        configuration=configuration,
        ratios=comparison.ratios,
        environment=comparison.environment,
    )


def report_document(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """What a report holds of its comparisons, as `earlier_results` reads it."""
    return {
        "format_version": _FORMAT,
        "comparisons": [
            {
                "configuration": comparison.settings["configuration"],
                "ratios": [_ratio_document(ratio) for ratio in comparison.ratios],
                "environment": comparison.environment,
            }
            for comparison in comparisons
            if "configuration" in comparison.settings
        ],
    }


def _ratio_document(ratio: Ratio) -> dict[str, Any]:
    """A ratio without what its plan had predicted."""
    return {
        "label": ratio.label,
        "ratio": ratio.ratio,
        "low": ratio.low,
        "high": ratio.high,
        "verdict": ratio.verdict,
    }


def _from_document(document: Any) -> list[Earlier]:
    if not isinstance(document, Mapping):
        raise DataError("its configuration is damaged")
    version = document.get("format_version")
    if version != _FORMAT or isinstance(version, bool):
        raise DataError(
            f"its configuration has the format {shown(version)}, this Workbench reads {_FORMAT}; "
            "update it (pip install --upgrade recsys-workbench), or measure again with the command "
            "at the end of the page"
        )
    found = document.get("comparisons")
    if not isinstance(found, list) or not 1 <= len(found) <= _MOST_COMPARISONS:
        raise DataError(
            "its configuration holds no comparison; measure again with the command "
            "at the end of the page"
        )
    return [_earlier(each) for each in found]


def _earlier(document: Any) -> Earlier:
    environment = document.get("environment") if isinstance(document, Mapping) else None
    ratios = document.get("ratios") if isinstance(document, Mapping) else None
    if not isinstance(environment, dict) or not isinstance(ratios, list):
        raise DataError("its configuration is damaged: it holds no results")
    return Earlier(
        configuration=configuration_from(document.get("configuration")),
        ratios=tuple(map(_ratio, ratios)),
        environment=environment,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RatioDocument:
    """A ratio as `_ratio_document` writes it; a report has null for an edge that is infinite."""

    label: str
    ratio: float
    low: float | None
    high: float | None
    verdict: Verdict


def _ratio(document: Any) -> Ratio:
    try:
        read = value_of(_RatioDocument, document, "a ratio")
    except DataError as error:
        raise DataError(f"its configuration is damaged: a ratio is none: {error}") from None
    low = 0.0 if read.low is None else read.low
    high = math.inf if read.high is None else read.high
    if not (0 <= low <= read.ratio <= high and 0 < read.ratio < math.inf):
        raise DataError(
            "its configuration is damaged: a ratio is none: its interval is not in order"
        )
    return Ratio(label=read.label, ratio=read.ratio, low=low, high=high, verdict=read.verdict)

"""A measurement of a served model in a file of JSON and back."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from workbench.errors import DataError
from workbench.experiments.program.settings_json import optimizations_from, to_json
from workbench.experiments.serving.points import PERCENTILES, LoadPoint
from workbench.files.atomic_file import replacing
from workbench.files.saved_values import is_file, json_of, read_file, shown, value_of

Saved = TypeVar("Saved")
_KIND, _FORMAT_VERSION = "workbench serving", 1
_LARGEST_BYTES = 64 << 20
_LARGEST, _MOST_CORES = 1e18, 1 << 20


def write(fields: Mapping[str, Any], path: str | os.PathLike[str]) -> Path:
    """Writes a measurement, given as its fields by name; see `ServingComparison.save`."""
    content = {
        name: [dataclasses.asdict(each) for each in value] if name == "receipts" else value
        for name, value in fields.items()
    }
    content["variants"] = [
        {**dataclasses.asdict(variant), "optimizations": to_json(variant.optimizations)}
        for variant in fields["variants"]
    ]
    document = {"kind": _KIND, "format_version": _FORMAT_VERSION, **content}
    with replacing(path) as part:
        part.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    return Path(path)


def read(path: str | os.PathLike[str], kind: type[Saved], variant_kind: type[Any]) -> Saved:
    """Reads what `write` wrote into `kind`, whose variants are of `variant_kind`.

    Raises:
      DataError: no such file is there, it is damaged, or this version cannot read it.
    """
    if not is_file(path):
        raise DataError(f"{path}: there is no such file; give what serve-bench --save wrote")
    try:
        content = json_of(read_file(path, _LARGEST_BYTES))
        _require_version(content)
        held = content.pop("variants", None)
        variants = tuple(
            _variant(each, f"variants[{number}]", variant_kind)
            for number, each in enumerate(value_of(tuple[dict[str, Any], ...], held, "variants"))
        )
        fields = {name: value for name, value in content.items() if name not in _HEAD}
        return _checked(value_of(kind, fields, "the measurement", variants=variants))
    except DataError as error:
        raise DataError(f"{path}: is no saved measurement of a served model: {error}") from None


_HEAD = ("kind", "format_version")


def _require_version(content: Any) -> None:
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise DataError("it holds something else")
    version = content.get("format_version")
    if version != _FORMAT_VERSION or isinstance(version, bool):
        raise DataError(
            f"it has format {shown(version)}, and this Workbench reads {_FORMAT_VERSION}; update "
            "it (pip install --upgrade recsys-workbench), or measure again"
        )


def _variant(held: Mapping[str, Any], where: str, kind: type[Any]) -> Any:
    fields = {name: value for name, value in held.items() if name != "optimizations"}
    setting = optimizations_from(held.get("optimizations"))
    return value_of(kind, fields, where, optimizations=setting)


def _checked(comparison: Any) -> Any:
    """Requires what every view takes for granted.

    Raises:
      DataError: no variant, a label twice or unknown, other loads than the baseline's, or a number
        out of range.
    """
    labels = [variant.label for variant in comparison.variants]
    if not labels or len(set(labels)) < len(labels):
        raise DataError(f"its variants are {shown(labels)}; expected one or more, none twice")
    if not comparison.loads:
        raise DataError("it has no load; expected one or more")
    cores = comparison.environment.get("cores", 0)
    if not isinstance(cores, int) or isinstance(cores, bool) or not 0 <= cores <= _MOST_CORES:
        raise DataError(f"it has {shown(cores)} cores; expected a whole number")
    for receipt in comparison.receipts:
        if receipt.label not in labels:
            raise DataError(f"there is no variant {shown(receipt.label)}")
    for variant in comparison.variants:
        where = f"variant {shown(variant.label)}"
        if [(p.load, p.rows) for p in variant.points] != list(comparison.loads):
            raise DataError(f"{where} has other loads than the baseline")
        for point in variant.points:
            _require_blocks(point, where)
        for rate in variant.rates_at_limit:
            _require_numbers(where, (rate.limit_ns, *rate.rates))
            _require_numbers(where, [probe.rate for probe in rate.probes])
    return comparison


def _require_blocks(point: LoadPoint, where: str) -> None:
    for block in point.blocks:
        if len(block.percentiles_ns) not in (0, len(PERCENTILES)):
            raise DataError(f"{where} has {len(block.percentiles_ns)} percentiles in a block")
        _require_numbers(where, dataclasses.astuple(block)[:3])
        _require_numbers(where, (*block.percentiles_ns, block.client_cpu_s, block.server_cpu_s))


def _require_numbers(where: str, numbers: Sequence[float]) -> None:
    for number in numbers:
        if not 0 <= number <= _LARGEST or math.isnan(number):
            raise DataError(f"{where} has the number {number}; expected 0 to {_LARGEST:g}")

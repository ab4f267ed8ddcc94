"""A comparison in a directory and back: an index, and a file for each trace and each boundary."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import load_trace
from workbench.errors import DataError, PlanError
from workbench.experiments.comparison import COMPARISON_FILE
from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.files.atomic_file import make_directory, put_in_place, writing
from workbench.files.saved_values import is_file, json_of, read_file, shown, value_of

Saved = TypeVar("Saved")
_FORMAT_VERSION = 3
_LARGEST = 1e15
# What is read of the settings, where it is there; the rest is only shown.
_SETTINGS: dict[str, Any] = {
    "steps_per_block": dict[str, int],
    "groups": int,
    "bootstrap_seed": int,
    "configuration": dict[str, Any],
}
# Leads into no other directory.
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def write(fields: Mapping[str, Any], directory: str | os.PathLike[str]) -> Path:
    """Writes a comparison, given as its fields by name; see `Comparison.save`."""
    directory = make_directory(directory)
    with writing(directory), tempfile.TemporaryDirectory(prefix=".saving-", dir=directory) as d:
        new = Path(d)
        traces, boundaries = {}, {}
        for number, variant in enumerate(fields["variants"]):
            if variant.trace is not None:
                traces[variant.label] = f"trace-{number}.parquet"
                variant.trace.save(new / traces[variant.label])
            if variant.plan is not None and variant.plan.boundary is not None:
                boundaries[variant.label] = f"boundary-{number}.json.gz"
                content = boundary_to_bytes(variant.plan.boundary)
                (new / boundaries[variant.label]).write_bytes(content)
        document = _to_json(fields, traces, boundaries)
        (new / COMPARISON_FILE).write_text(json.dumps(document, indent=1) + "\n")
        # The index last: it names files that are complete.
        for file in (*traces.values(), *boundaries.values(), COMPARISON_FILE):
            put_in_place(new / file, directory / file)
    return directory


def _to_json(
    fields: Mapping[str, Any], traces: dict[str, str], boundaries: dict[str, str]
) -> dict[str, Any]:
    """What the index holds.

    Args:
      fields: of the comparison.
      traces, boundaries: names of files by label of their variant.
    """
    listed = ("variants", "ratios", "equivalence", "bounds")
    content = {name: value for name, value in fields.items() if name not in listed}
    content["variants"] = [
        {
            **{f.name: getattr(v, f.name) for f in dataclasses.fields(v)},
            "trace": traces.get(v.label),
            "plan": json.loads(v.plan.to_json()) if v.plan else None,
            "boundary": boundaries.get(v.label),
        }
        for v in fields["variants"]
    ]
    for name in ("ratios", "equivalence", "bounds"):
        content[name] = [dataclasses.asdict(item) for item in fields[name]]
    return {"format_version": _FORMAT_VERSION, **content}


def read(directory: str | os.PathLike[str], kind: type[Saved]) -> Saved:
    """Reads what `write` wrote into a comparison, which is `kind`; see `load_comparison`."""
    path = Path(directory) / COMPARISON_FILE
    if not is_file(path):
        raise DataError(
            f"{directory}: holds no {COMPARISON_FILE}; "
            "give a directory that `workbench compare` wrote"
        )
    try:
        content = json_of(read_file(path))
    except DataError as error:
        raise DataError(f"{path}: is not a saved comparison: {error}") from None
    version = content.pop("format_version", None) if isinstance(content, dict) else None
    if version != _FORMAT_VERSION or isinstance(version, bool):
        raise DataError(f"{path}: {_wrong_version(version, content)}")
    try:
        variants = value_of(tuple[dict[str, Any], ...], content.pop("variants", None), "variants")
        rows = tuple(
            _variant(variant, f"variants[{number}]", path.parent)
            for number, variant in enumerate(variants)
        )
        return _checked(value_of(kind, content, "the comparison", variants=rows))
    except FileError as error:
        raise DataError(str(error)) from None
    except (DataError, PlanError) as error:
        raise DataError(f"{path}: is not a saved comparison: {error}") from None


class FileError(DataError):
    """A file beside the index is damaged, or the index names one that cannot be; says which."""


def _wrong_version(version: Any, content: Any) -> str:
    """Why a comparison of another format version is not read, and what to do."""
    text = f"was saved in format {shown(version)}, and this Workbench reads {_FORMAT_VERSION}"
    if not isinstance(version, int):
        return f"is not a saved comparison: it {text}"
    if version > _FORMAT_VERSION:
        return f"{text}; update it (pip install --upgrade recsys-workbench)"
    command = content.get("command")
    return f"{text}; measure again{f' with: {command}' if command else ''}"


def _variant(held: Mapping[str, Any], where: str, directory: Path) -> MeasuredVariant:
    """One variant, with its trace and its plan, which stand in files of their own."""
    names = ("trace", "plan", "boundary")
    for name in names:
        if name not in held:
            raise DataError(f"{where} has no {name}")
    trace, plan = held["trace"], held["plan"]
    found: MeasuredVariant = value_of(
        MeasuredVariant,
        {name: value for name, value in held.items() if name not in names},
        where,
        trace=None if trace is None else load_trace(_own_file(directory, trace)),
        plan=None if plan is None else _plan_from(plan, held["boundary"], directory),
    )
    return found


def _plan_from(document: Any, file: Any, directory: Path) -> StagePlan:
    """A variant's plan with its boundary, which stands in a file of its own."""
    plan = StagePlan.from_document(document)
    if file is None:
        return plan
    path = _own_file(directory, file)
    try:
        boundary = boundary_from_bytes(read_file(path))
        for stage in plan.stages:
            for name in (*stage.start, *stage.moved, *stage.carried):
                boundary.view.number(name)
    except (DataError, PlanError) as error:
        raise FileError(f"{path}: {error}") from None
    return dataclasses.replace(plan, boundary=boundary)


def _own_file(directory: Path, name: Any) -> Path:
    """A file of the comparison's own directory, which a name in its index must not lead out of."""
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        raise FileError(
            f"{directory / COMPARISON_FILE}: names the file {shown(name)}; "
            "expected one of its own directory"
        )
    return directory / name


def _checked(comparison: Any) -> Any:
    """Requires what every view of a comparison takes for granted.

    Raises:
      DataError: a label that no variant has or two have, or a number out of range.
    """
    labels = [variant.label for variant in comparison.variants]
    if not labels or len(set(labels)) < len(labels) or labels[0] != comparison.baseline:
        raise DataError(
            f"its variants are {shown(labels)}; expected the baseline "
            f"{shown(comparison.baseline)} first, and no label twice"
        )
    for name, kind in _SETTINGS.items():
        if name in comparison.settings:
            value_of(kind, comparison.settings[name], f"settings.{name}")
    for each in (*comparison.ratios, *comparison.equivalence):
        if each.label not in labels:
            raise DataError(f"there is no variant {shown(each.label)}")
    for variant in comparison.variants:
        where = f"variant {shown(variant.label)}"
        _require_numbers(where, variant, "steps_per_s", "low", "high", "step_ms_median")
        for rate in variant.block_steps_per_s:
            _require_number(f"{where}.block_steps_per_s", rate)
    for ratio in comparison.ratios:
        _require_numbers(f"the ratio of {shown(ratio.label)}", ratio, "ratio", "low", "high")
        if ratio.predicted is not None:
            _require_number("what was predicted", ratio.predicted)
    for bound in comparison.bounds:
        _require_numbers(f"bound {shown(bound.name)}", bound, "steps_per_s")
    return comparison


def _require_numbers(where: str, held: Any, *names: str) -> None:
    for name in names:
        _require_number(f"{where}.{name}", getattr(held, name))


def _require_number(where: str, number: float) -> None:
    """A rate, a ratio or a time; too few blocks leave an interval without an end."""
    if not (0 <= number <= _LARGEST or (number == math.inf and where.endswith("high"))):
        raise DataError(f"{where} is {number}; expected 0 to {_LARGEST:g}")

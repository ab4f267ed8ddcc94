"""A comparison in a directory and back: an index, and a file for each trace and each boundary."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from workbench.atomic_file import make_directory, put_in_place, writing
from workbench.core.boundary.boundary_file import boundary_from_bytes, boundary_to_bytes
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.trace.trace import load_trace
from workbench.errors import DataError, PlanError
from workbench.experiments.comparison.measured import MeasuredVariant, Ratio
from workbench.experiments.measurement.bounds import Bound
from workbench.experiments.measurement.equivalence import Equivalence

Made = TypeVar("Made")
_FORMAT_VERSION = 3
_FILE = "comparison.json"
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
        (new / _FILE).write_text(json.dumps(document, indent=1) + "\n")
        # The index last: it names files that are complete.
        for file in (*traces.values(), *boundaries.values(), _FILE):
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


def read(directory: str | os.PathLike[str], make: Callable[..., Made]) -> Made:
    """Reads what `write` wrote, and makes a comparison of its fields; see `load_comparison`."""
    path = Path(directory) / _FILE
    try:
        content = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{directory}: holds no {_FILE}; give a directory that `workbench compare` wrote"
        ) from None
    except ValueError as error:
        raise DataError(f"{path}: is not a saved comparison: {error}") from None
    version = content.pop("format_version", None) if isinstance(content, dict) else None
    if version != _FORMAT_VERSION:
        raise DataError(f"{path}: {_wrong_version(version, content)}")
    try:
        return make(**_fields(content, path.parent))
    except (KeyError, TypeError, AttributeError, PlanError) as error:
        raise DataError(f"{path}: is not a saved comparison: {error}") from None


def _wrong_version(version: Any, content: Any) -> str:
    """Why a comparison of another format version is not read, and what to do."""
    text = f"was saved in format {version!r}, and this Workbench reads {_FORMAT_VERSION}"
    if not isinstance(version, int):
        return f"is not a saved comparison: it {text}"
    if version > _FORMAT_VERSION:
        return f"{text}; update it (pip install --upgrade recsys-workbench)"
    command = content.get("command")
    return f"{text}; measure again{f' with: {command}' if command else ''}"


def _fields(content: dict[str, Any], directory: Path) -> dict[str, Any]:
    """What a comparison is made of, with the traces and boundaries of its files."""
    variants = []
    for variant in content.pop("variants"):
        file = variant.pop("trace")
        plan = _plan_from(variant.pop("plan"), variant.pop("boundary"), directory)
        variants.append(
            MeasuredVariant(
                **{
                    **variant,
                    "block_steps_per_s": tuple(variant["block_steps_per_s"]),
                    "notes": tuple(variant["notes"]),
                },
                trace=load_trace(_own_file(directory, file)) if file else None,
                plan=plan,
            )
        )
    return {
        "variants": tuple(variants),
        "ratios": tuple(Ratio(**ratio) for ratio in content.pop("ratios")),
        "equivalence": tuple(map(_check_from, content.pop("equivalence"))),
        "bounds": tuple(Bound(**bound) for bound in content.pop("bounds")),
        **content,
    }


def _check_from(check: dict[str, Any]) -> Equivalence:
    lists = {name: tuple(check.pop(name, ())) for name in ("losses", "baseline_losses")}
    return Equivalence(**{**check, **lists})


def _plan_from(
    document: dict[str, Any] | None, file: str | None, directory: Path
) -> StagePlan | None:
    """A variant's plan with its boundary, which stands in a file of its own."""
    if document is None:
        return None
    plan = StagePlan.from_json(json.dumps(document))
    if file is None:
        return plan
    path = _own_file(directory, file)
    try:
        return dataclasses.replace(plan, boundary=boundary_from_bytes(path.read_bytes()))
    except (OSError, DataError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path}: {reason}") from None


def _own_file(directory: Path, name: Any) -> Path:
    """A file of the comparison's own directory, which a name in its index must not lead out of."""
    if not isinstance(name, str) or not _PLAIN.fullmatch(name):
        raise DataError(
            f"{directory / _FILE}: names the file {name!r}; expected one of its own directory"
        )
    return directory / name

"""SavedSession: what a session holds, in a directory and back.

`session.json` names the folder beside it that has the comparisons and the graphs; it is written
last, so that it always names what is complete.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Any

from workbench.core.optimizations import Optimizations
from workbench.errors import DataError, OptionError
from workbench.experiments.comparison.comparison_file import FileError
from workbench.experiments.comparison.results import Comparison, load_comparison
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.program_facts import ProgramFacts
from workbench.experiments.session.run import Run, comparisons_of
from workbench.experiments.session.saved import SESSION_FILE
from workbench.experiments.session.saved.graphs import (
    learned_from_json,
    learned_to_json,
    write_graphs,
)
from workbench.experiments.session.saved.options import (
    optimizations_from_json,
    optimizations_to_json,
)
from workbench.files.atomic_file import make_directory, replacing, writing
from workbench.files.saved_values import json_of, read_file, shown, value_of

# Format 1 has no names, notes and groups of runs; its runs are numbered without gaps.
_FORMAT_VERSION, _READABLE = 2, (1, 2)
# Nothing else is ever read or removed in a session's directory.
_FOLDER = re.compile(r"saved-[0-9a-f]{32}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SavedSession:
    """What a session holds; the fields are those of `Session`."""

    program: ProgramFacts
    baseline: Optimizations
    budget_s: float
    trace_steps: int
    stop_when_clear: bool = False
    runs: tuple[Run, ...] = ()
    learned: LearnedGraphs | None = None


def write_session(saved: SavedSession, directory: str | os.PathLike[str]) -> Path:
    """Writes a session into a directory, in the place of what was saved there.

    Raises:
      OptionError: a setting holds exception classes.
      OutputError: it cannot be written; what was saved there before is kept.
    """
    home = make_directory(directory)
    folder = f"saved-{uuid.uuid4().hex}"
    comparisons = comparisons_of(saved.runs)
    document = _document(saved, comparisons, folder)
    before = _folder_of(home)
    with writing(home):
        try:
            (home / folder).mkdir()
            for number, comparison in enumerate(comparisons):
                comparison.save(home / folder / _comparison(number))
            if saved.learned is not None:
                write_graphs(saved.learned, home / folder)
            with replacing(home / SESSION_FILE) as part:
                part.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
        except BaseException:
            shutil.rmtree(home / folder, ignore_errors=True)
            raise
        if before:
            shutil.rmtree(home / before, ignore_errors=True)
    return home


def read_session(directory: str | os.PathLike[str]) -> SavedSession:
    """The session that `write_session` wrote; nothing is run.

    Raises:
      DataError: none is there, it is damaged, or this version cannot read it.
      TraceError: one of its traces is broken.
    """
    path = Path(directory) / SESSION_FILE
    document = _read(path)
    version = document.pop("format_version", None)
    if type(version) is not int or version not in _READABLE:
        raise DataError(f"{path}: {_wrong_version(version)}")
    try:
        index = value_of(_Index, document, "the session")
        return _from_index(index, path.parent)
    except FileError:
        raise
    except (DataError, OptionError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(f"{path}: is damaged: {error}; save the session again")


def _document(saved: SavedSession, comparisons: list[Comparison], folder: str) -> dict[str, Any]:
    places = {id(comparison): number for number, comparison in enumerate(comparisons)}
    return {
        "format_version": _FORMAT_VERSION,
        "folder": folder,
        "program": dataclasses.asdict(saved.program),
        "baseline": optimizations_to_json(saved.baseline),
        "budget_s": saved.budget_s,
        "trace_steps": saved.trace_steps,
        "stop_when_clear": saved.stop_when_clear,
        "comparisons": len(comparisons),
        "runs": [
            {
                "number": run.number,
                "optimizations": optimizations_to_json(run.optimizations),
                "comparison": places[id(run.comparison)],
                "variant": run.variant,
                "started": run.started,
                "name": run.name,
                "note": run.note,
                "group": run.group,
            }
            for run in saved.runs
        ],
        "learned": learned_to_json(saved.learned) if saved.learned is not None else None,
    }


def _read(path: Path) -> dict[str, Any]:
    """The index as JSON."""
    if not os.path.lexists(path):
        raise DataError(
            f"{path.parent}: holds no {SESSION_FILE}; give a directory that Session.save wrote"
        )
    content = _content(path)
    try:
        document = json_of(content)
    except DataError as error:
        raise DataError(
            f"{path}: is not a saved session, or was cut off: {error}; save the session again"
        ) from None
    if not isinstance(document, dict):
        raise DataError(f"{path}: is not a saved session; give a directory that Session.save wrote")
    return document


def _content(path: Path) -> bytes:
    try:
        return read_file(path)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def _wrong_version(version: Any) -> str:
    text = f"was saved in format {shown(version)}, and this Workbench reads {_FORMAT_VERSION}"
    if type(version) is not int:
        return f"is not a saved session: it {text}"
    if version > _FORMAT_VERSION:
        return f"{text}; update it (pip install --upgrade recsys-workbench)"
    return f"{text}; run the settings again"


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RunDocument:
    """One run; its setting is read by what knows settings."""

    number: int
    optimizations: dict[str, Any]
    comparison: int
    variant: str
    started: str
    name: str = ""
    note: str = ""
    group: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Index:
    """What `session.json` holds, but for the version."""

    folder: str
    program: ProgramFacts
    baseline: dict[str, Any]
    budget_s: float
    trace_steps: int
    comparisons: int
    runs: tuple[_RunDocument, ...]
    learned: dict[str, Any] | None
    stop_when_clear: bool = False


def _from_index(index: _Index, home: Path) -> SavedSession:
    folder = home / _folder_named(index.folder)
    if not 0 <= index.comparisons <= max(1, len(index.runs)):
        raise DataError(f"it has {index.comparisons} comparisons of {len(index.runs)} runs")
    comparisons = [_comparison_in(folder, number) for number in range(index.comparisons)]
    runs = tuple(_run_from(each, comparisons) for each in index.runs)
    numbers = [run.number for run in runs]
    if numbers != sorted({*numbers}) or any(number < 1 for number in numbers):
        raise DataError("its runs are not numbered 1, 2, …, apart from those that were deleted")
    if not 0 < index.budget_s < math.inf:
        raise DataError(f"its budget is {index.budget_s!r} seconds")
    if index.trace_steps < 0:
        raise DataError(f"it traces {index.trace_steps} steps")
    return SavedSession(
        program=index.program,
        baseline=optimizations_from_json(index.baseline),
        budget_s=index.budget_s,
        trace_steps=index.trace_steps,
        stop_when_clear=index.stop_when_clear,
        runs=runs,
        learned=None if index.learned is None else learned_from_json(index.learned, folder),
    )


def _comparison_in(folder: Path, number: int) -> Comparison:
    try:
        return load_comparison(folder / _comparison(number))
    except DataError as error:
        raise FileError(str(error)) from None


def _run_from(document: _RunDocument, comparisons: list[Comparison]) -> Run:
    if not 0 <= document.comparison < len(comparisons):
        raise DataError(f"run {document.number} is of comparison {document.comparison}")
    comparison = comparisons[document.comparison]
    if document.variant not in [each.label for each in comparison.variants]:
        raise DataError(f"a comparison has no variant {shown(document.variant)}")
    return Run(
        number=document.number,
        optimizations=optimizations_from_json(document.optimizations),
        comparison=comparison,
        variant=document.variant,
        started=document.started,
        name=document.name,
        note=document.note,
        group=document.group,
    )


def _folder_named(folder: Any) -> str:
    """The folder that the index names: a name of ours and no path that leads elsewhere."""
    if not isinstance(folder, str) or not _FOLDER.fullmatch(folder):
        raise DataError(f"it names {shown(folder)} as its folder")
    return folder


def _folder_of(home: Path) -> str | None:
    """The folder of the session that is saved there; None where there is none that can be told."""
    try:
        return _folder_named(_read(home / SESSION_FILE).get("folder"))
    except DataError:
        return None


def _comparison(number: int) -> str:
    return f"comparison-{number}"

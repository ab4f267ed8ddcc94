"""SavedSession: what a session holds, in a directory and back.

`session.json` names the folder beside it that has the comparisons and the graphs; it is written
last, so that it always names what is complete.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.atomic_file import make_directory, replacing, writing
from workbench.core.options import Optimizations
from workbench.errors import DataError, TraceError
from workbench.experiments.comparison.results import Comparison, load_comparison
from workbench.experiments.session.learned_graphs import LearnedGraphs
from workbench.experiments.session.program_facts import ProgramFacts
from workbench.experiments.session.run import Run, comparisons_of
from workbench.experiments.session.saved.graphs import (
    learned_from_json,
    learned_to_json,
    write_boundaries,
)
from workbench.experiments.session.saved.options import (
    optimizations_from_json,
    optimizations_to_json,
)

_FORMAT_VERSION = 1
_FILE = "session.json"
# Nothing else is ever read or removed in a session's directory.
_FOLDER = re.compile(r"saved-[0-9a-f]{32}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class SavedSession:
    """What a session holds; the fields are those of `Session`."""

    program: ProgramFacts
    baseline: Optimizations
    budget_s: float
    trace_steps: int
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
                write_boundaries(saved.learned, home / folder)
            with replacing(home / _FILE) as part:
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
    path = Path(directory) / _FILE
    document = _read(path)
    version = document.pop("format_version", None)
    if version != _FORMAT_VERSION:
        raise DataError(f"{path}: {_wrong_version(version)}")
    try:
        return _from_document(document, path.parent)
    except (DataError, TraceError):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            f"{path}: is damaged: {type(error).__name__}: {error}; save the session again"
        ) from None


def _document(saved: SavedSession, comparisons: list[Comparison], folder: str) -> dict[str, Any]:
    places = {id(comparison): number for number, comparison in enumerate(comparisons)}
    return {
        "format_version": _FORMAT_VERSION,
        "folder": folder,
        "program": dataclasses.asdict(saved.program),
        "baseline": optimizations_to_json(saved.baseline),
        "budget_s": saved.budget_s,
        "trace_steps": saved.trace_steps,
        "comparisons": len(comparisons),
        "runs": [
            {
                "number": run.number,
                "optimizations": optimizations_to_json(run.optimizations),
                "comparison": places[id(run.comparison)],
                "variant": run.variant,
                "started": run.started,
            }
            for run in saved.runs
        ],
        "learned": learned_to_json(saved.learned) if saved.learned is not None else None,
    }


def _read(path: Path) -> dict[str, Any]:
    """The index as JSON."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{path.parent}: holds no {_FILE}; give a directory that Session.save wrote"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: is not a saved session, or was cut off: {error}; save the session again"
        ) from None
    if not isinstance(document, dict):
        raise DataError(f"{path}: is not a saved session; give a directory that Session.save wrote")
    return document


def _wrong_version(version: Any) -> str:
    text = f"was saved in format {version!r}, and this Workbench reads {_FORMAT_VERSION}"
    if type(version) is not int:
        return f"is not a saved session: it {text}"
    if version > _FORMAT_VERSION:
        return f"{text}; update it (pip install --upgrade recsys-workbench)"
    return f"{text}; run the settings again"


def _from_document(document: Mapping[str, Any], home: Path) -> SavedSession:
    folder = home / _folder_named(document)
    facts = ProgramFacts(**document["program"])
    if not isinstance(facts.name, str) or not isinstance(facts.batch_size, int | None):
        raise TypeError(f"the program is {document['program']!r}")
    comparisons = [load_comparison(folder / _comparison(n)) for n in range(document["comparisons"])]
    runs = tuple(_run_from(each, comparisons) for each in document["runs"])
    if [run.number for run in runs] != list(range(1, len(runs) + 1)):
        raise ValueError("its runs are not numbered 1, 2, …")
    learned, budget_s = document["learned"], float(document["budget_s"])
    if not budget_s > 0:
        raise ValueError(f"its budget is {budget_s!r} seconds")
    return SavedSession(
        program=facts,
        baseline=optimizations_from_json(document["baseline"]),
        budget_s=budget_s,
        trace_steps=int(document["trace_steps"]),
        runs=runs,
        learned=None if learned is None else learned_from_json(learned, folder),
    )


def _run_from(document: Mapping[str, Any], comparisons: list[Comparison]) -> Run:
    comparison = comparisons[range(len(comparisons)).index(document["comparison"])]
    if document["variant"] not in [each.label for each in comparison.variants]:
        raise ValueError(f"a comparison has no variant {document['variant']!r}")
    return Run(
        number=document["number"],
        optimizations=optimizations_from_json(document["optimizations"]),
        comparison=comparison,
        variant=document["variant"],
        started=str(document["started"]),
    )


def _folder_named(document: Mapping[str, Any]) -> str:
    """The folder of what the index names: a name of ours and no path that leads elsewhere."""
    folder = document["folder"]
    if not isinstance(folder, str) or not _FOLDER.fullmatch(folder):
        raise ValueError(f"it names {folder!r} as its folder")
    return folder


def _folder_of(home: Path) -> str | None:
    """The folder of the session that is saved there; None where there is none that can be told."""
    try:
        return _folder_named(_read(home / _FILE))
    except (DataError, KeyError, ValueError):
        return None


def _comparison(number: int) -> str:
    return f"comparison-{number}"

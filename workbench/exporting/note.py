"""The note in an export: which version of Workbench wrote it, and which of its ops it has."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import workbench
from workbench.errors import DataError
from workbench.files.saved_values import json_of, read_file, value_of

# TensorFlow leaves what is in this folder alone.
_NOTE = Path("assets.extra") / "workbench.json"
_MOST_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Note:
    """What the note says.

    Attributes:
      workbench, tensorflow: the versions that wrote the model.
      ops: the types of Workbench's ops that the model has, sorted; none where it needs only
        TensorFlow.
    """

    workbench: str
    tensorflow: str
    ops: tuple[str, ...]


def write_note(folder: Path, ops: Iterable[str]) -> None:
    """Leaves a note in the folder of a SavedModel."""
    import tensorflow as tf

    note = Note(
        workbench=workbench.__version__, tensorflow=tf.__version__, ops=tuple(sorted(set(ops)))
    )
    path = folder / _NOTE
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(dataclasses.asdict(note), indent=2) + "\n", encoding="utf-8")


def read_note(folder: Path) -> Note | None:
    """The note of a SavedModel, None where it has none.

    Raises:
      DataError: the note is damaged.
    """
    path = folder / _NOTE
    if not path.is_file():
        return None
    try:
        note: Note = value_of(Note, json_of(read_file(path, _MOST_BYTES)), "the note")
    except DataError as error:
        raise DataError(f"{path}: {error}") from error
    return note

"""The file of a SavedModel: as a message, or as its text, as TensorFlow reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.errors import DataError

# TensorFlow takes the first one that is there.
BINARY, TEXT = "saved_model.pb", "saved_model.pbtxt"
EITHER = f"{BINARY} or {TEXT}"


def saved_model_file(folder: Path) -> Path | None:
    """The file of the SavedModel in a folder; None where there is none."""
    return next((folder / name for name in (BINARY, TEXT) if (folder / name).is_file()), None)


def read_saved_model(folder: Path) -> Any:
    """The SavedModel in a folder.

    Raises:
      DataError: there is none, or it cannot be read.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    saved, file = SavedModel(), saved_model_file(folder)
    if file is None:
        raise DataError(f"{folder}: is no SavedModel: it has no {EITHER}")
    try:
        if file.name == BINARY:
            saved.ParseFromString(file.read_bytes())
        else:
            text_format.Parse(file.read_bytes().decode(), saved)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}") from error
    except (DecodeError, text_format.ParseError, UnicodeDecodeError) as error:
        raise DataError(f"{folder}: {file.name} is damaged: {error}") from error
    if not saved.meta_graphs:
        raise DataError(f"{folder}: {file.name} has no model")
    return saved

"""`export`: a model as a SavedModel that loads where Workbench is not installed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workbench.core.tf_graph.saved_model_file import read_saved_model
from workbench.errors import OptionError, OutputError, first_line
from workbench.exporting import folders
from workbench.exporting.exported import Export
from workbench.exporting.note import write_note
from workbench.exporting.phases import Phases, Say, phases
from workbench.exporting.saved_proto import Lowered, lower_saved_model, own_ops
from workbench.files.atomic_directory import new_directory, require_free_directory


def export(
    model: Any,
    directory: str | os.PathLike[str],
    *,
    inputs: Any = None,
    outputs: Any = None,
    signatures: Mapping[str, Any] | None = None,
    version: int | None = None,
    keep_ops: bool = False,
    progress: Say | None = None,
) -> Export:
    """Writes a model as a SavedModel of stock ops alone.

    TensorFlow loads it where Workbench is not installed. EmbeddingVariables become hash tables and
    matrices of rows, fused ops become stock ones, and stages are left out. The folder appears whole
    or not at all.

    A SavedModel is code that may read and write files. Load one only if you trust who made it.

    Args:
      model: a Keras model, a `tf.Module`, a `tf.function` or a concrete one, a session of
        `tf.compat.v1`, or the folder of a SavedModel or of its versions.
      directory: the new folder; it may be there if it is empty.
      inputs: of a session by name a tensor or its name; a list of tensors has their own names. Of a
        `tf.function` its TensorSpecs.
      outputs: of a session, likewise.
      signatures: several of them by name. Of a session each is a SignatureDef or a pair of inputs
        and outputs. Of a module as `tf.saved_model.save` takes them.
      version: write the folder of this number below `directory`, beside those of other versions, as
        TensorFlow Serving reads them. A folder of versions has its own numbers, and takes none.
      keep_ops: keep Workbench's ops. `load_saved` loads the model then.
      progress: is told each phase after two seconds; None says them on standard error.

    Returns:
      What was written; its text begins with the caution above.

    Raises:
      OptionError: an argument that does not fit the model.
      DataError: no SavedModel where one is given, or a damaged one.
      UnsupportedError: the model has ops that have no stock form.
      OutputError: the folder is not empty, or cannot be written.
    """
    target = _target(directory, version)
    if version is not None and isinstance(model, (str, os.PathLike)):
        _refuse_versions(Path(model), version)
    require_free_directory(target)
    with phases(progress) as say, _writing(target), new_directory(target) as part:
        say("preparing the model")
        if isinstance(model, (str, os.PathLike)):
            _refuse_all(inputs=inputs, outputs=outputs, signatures=signatures)
            written = _of_folder(Path(model), part, say, keep_ops=keep_ops)
        elif hasattr(model, "run") and hasattr(model, "graph"):
            written = _of_session(model, part, say, inputs, outputs, signatures, keep_ops=keep_ops)
        else:
            written = _of_object(model, part, say, inputs, outputs, signatures, keep_ops=keep_ops)
    return Export(path=target, **written)


def _target(directory: str | os.PathLike[str], version: int | None) -> Path:
    if version is None:
        return Path(directory)
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise OptionError(f"version is {version!r}; expected a whole number of 0 or more")
    return Path(directory) / str(version)


def _refuse_versions(folder: Path, version: int) -> None:
    if versions := folders.versions_in(folder):
        names = ", ".join(each.name for each in versions)
        raise OptionError(
            f"version is {version}, and {folder} has the versions {names}, which keep their "
            "numbers; leave version out, or give the folder of one"
        )


@contextlib.contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Turns TensorFlow's errors of files into sentences that name the folder."""
    import tensorflow as tf
    from tensorflow.python.util import deprecation

    # What saves sessions is deprecated as a whole.
    silent = deprecation.silence()
    silent.__enter__()
    try:
        yield
    except tf.errors.OpError as error:
        raise OutputError(f"{target}: cannot be written: {first_line(error.message)}") from error
    finally:
        # Never with the error, after which TensorFlow's would stay silent.
        silent.__exit__(None, None, None)


def _of_session(
    session: Any,
    part: Path,
    say: Phases,
    inputs: Any,
    outputs: Any,
    signatures: Mapping[str, Any] | None,
    *,
    keep_ops: bool,
    assets: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    from workbench.exporting.session.export_session import export_session
    from workbench.exporting.session.signatures import signatures_of

    wanted = signatures_of(session.graph, inputs, outputs, signatures)
    result = export_session(session, wanted, part, say, keep_ops=keep_ops, assets=assets or {})
    write_note(part, result.kept)
    return {
        **_with_files(part),
        "signatures": tuple(sorted(wanted)),
        "replaced": result.counts,
        "kept": result.kept,
        "rows": result.rows,
        "stage_inputs": result.stage_inputs,
    }


def _of_object(
    model: Any,
    part: Path,
    say: Phases,
    inputs: Any,
    outputs: Any,
    signatures: Any,
    *,
    keep_ops: bool,
) -> dict[str, Any]:
    from workbench.exporting.objects import is_object, save_object

    if not is_object(model):
        raise OptionError(
            f"the model is of type {type(model).__name__}; expected a Keras model, a tf.Module, a "
            "tf.function, a session, or the folder of a SavedModel"
        )
    _refuse_all(outputs=outputs)
    say("saving the model")
    save_object(model, part, inputs, signatures)
    return _finished(part, say, keep_ops=keep_ops)


def _of_folder(folder: Path, part: Path, say: Phases, *, keep_ops: bool) -> dict[str, Any]:
    versions = folders.versions_in(folder)
    if not versions:
        return _of_saved_model(folder, part, say, keep_ops=keep_ops)
    written = []
    for each in versions:
        (part / each.name).mkdir()
        written.append(_of_saved_model(each, part / each.name, say, keep_ops=keep_ops))
    return _merged(written)


def _of_saved_model(folder: Path, part: Path, say: Phases, *, keep_ops: bool) -> dict[str, Any]:
    say(f"reading {folder}")
    if keep_ops or not folders.needs_session(folder):
        folders.copy_model(folder, part)
        return _finished(part, say, keep_ops=keep_ops)
    import tensorflow as tf

    from workbench import _native

    _native.library()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signatures, assets = folders.load_into(session, folder)
        return _of_session(
            session, part, say, None, None, signatures, keep_ops=keep_ops, assets=assets
        )


def _finished(part: Path, say: Phases, *, keep_ops: bool) -> dict[str, Any]:
    """Has a SavedModel of TensorFlow 2 need stock TensorFlow alone, where ops are not kept."""
    lowered, kept = Lowered(counts={}), set()
    if keep_ops:
        kept = set().union(*(own_ops(meta) for meta in read_saved_model(part).meta_graphs))
    else:
        say("replacing Workbench's ops")
        lowered = lower_saved_model(part)
    write_note(part, kept)
    return {
        **_with_files(part),
        "signatures": folders.signature_names(part),
        "replaced": lowered.counts,
        "kept": tuple(sorted(kept)),
        "left_out": lowered.left_out,
    }


def _with_files(part: Path) -> dict[str, Any]:
    """Has a model read the files that it needs out of its own folder."""
    from workbench.exporting.moved_files import move_files

    moved = move_files(part)
    return {"copied_files": moved.copied, "left_files": moved.left}


def _merged(written: list[dict[str, Any]]) -> dict[str, Any]:
    """What became of several versions, as of one model."""
    merged: dict[str, Any] = {}
    for version in written:
        for name, value in version.items():
            if isinstance(value, tuple):
                merged[name] = tuple(dict.fromkeys((*merged.get(name, ()), *value)))
                continue
            held = merged.setdefault(name, {})
            for key, one in value.items():
                held[key] = held[key] + one if key in held and isinstance(one, int) else one
    return merged


def _refuse_all(**arguments: Any) -> None:
    for name, value in arguments.items():
        if value is not None:
            raise OptionError(f"{name} is given, but only the export of a session has {name}")

"""A SavedModel's signature: what a request gives, and what an answer has."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.core.tf_graph.saved_model_file import EITHER, read_saved_model, saved_model_file
from workbench.errors import DataError, OptionError

SERVE = "serve"
_SPARSE = ("indices", "values", "dense_shape")
_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")
_INT64 = 9  # DT_INT64 of tensorflow/core/framework/types.proto


@dataclasses.dataclass(frozen=True, kw_only=True)
class Input:
    """One input of a signature.

    Attributes:
      name: as the signature has it.
      kind: number of the TensorFlow type of its values.
      shape: of the dense tensor; None for dimensions of any size. None for any rank.
      tensors: names of the tensors that are fed: one, or indices, values and dense shape.
    """

    name: str
    kind: int
    shape: tuple[int | None, ...] | None
    tensors: tuple[str, ...]

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse tensor, fed as three."""
        return len(self.tensors) == len(_SPARSE)

    @property
    def kinds(self) -> tuple[int, ...]:
        """Numbers of the types of what is fed."""
        return (_INT64, self.kind, _INT64) if self.is_sparse else (self.kind,)

    @property
    def dtype(self) -> Any:
        """The TensorFlow type of its values."""
        import tensorflow as tf

        return tf.dtypes.as_dtype(self.kind)

    @property
    def words(self) -> str:
        """As messages name it: "'age', float32 [?, 1]"."""
        shape = "any shape" if self.shape is None else f"[{', '.join(map(_dim, self.shape))}]"
        sparse = "sparse " if self.is_sparse else ""
        return f"{self.name!r}, {sparse}{self.dtype.name} {shape}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signature:
    """What a call of a saved model feeds and fetches.

    Attributes:
      name: of the signature.
      inputs: by name, in order.
      outputs: names of what an answer has, sparse ones as three.
      fetches: names of the tensors of these.
      output_kinds: numbers of the TensorFlow types of these.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    fetches: tuple[str, ...]
    output_kinds: tuple[int, ...]

    @property
    def feeds(self) -> tuple[str, ...]:
        """Names of the tensors that are fed."""
        return tuple(tensor for each in self.inputs for tensor in each.tensors)

    @property
    def kinds(self) -> tuple[int, ...]:
        """Numbers of the types of the feeds."""
        return tuple(kind for each in self.inputs for kind in each.kinds)

    @property
    def output_types(self) -> tuple[str, ...]:
        """The TensorFlow types of the outputs, by name."""
        import tensorflow as tf

        return tuple(tf.dtypes.as_dtype(kind).name for kind in self.output_kinds)


def read_meta_graph(path: str) -> Any:
    """The MetaGraphDef of a SavedModel that is for serving.

    Raises:
      DataError: the folder holds no SavedModel, or one without such a graph.
    """
    model = _read(Path(path))
    tags = [sorted(graph.meta_info_def.tags) for graph in model.meta_graphs]
    for graph, tagged in zip(model.meta_graphs, tags, strict=True):
        if tagged == [SERVE]:
            _require_variables(path, graph.graph_def)
            return graph
    raise DataError(
        f"{path}: has no graph with the one tag {SERVE!r}, only {_named(map(', '.join, tags))}"
    )


def _require_variables(path: str, graph: Any) -> None:
    """Requires that the values of variables are there, which TensorFlow itself does not."""
    index = Path(path) / "variables" / "variables.index"
    if not index.is_file() and any(node.op in _VARIABLES for node in graph.node):
        raise DataError(f"{path}: its graph has variables, and {index} is not there")


def _read(folder: Path) -> Any:
    if saved_model_file(folder) is None:
        raise DataError(f"{folder}: is no SavedModel: {_instead(folder)}")
    return read_saved_model(folder)


def _instead(folder: Path) -> str:
    """What is there in place of a SavedModel."""
    if not folder.exists():
        return "there is no such folder"
    if not folder.is_dir():
        return f"it is a file; give the folder that holds {EITHER}"
    versions = sorted(each.name for each in folder.iterdir() if saved_model_file(each))
    if versions:
        return f"it holds no {EITHER}, but {_named(versions)} below it does; give that folder"
    return f"it holds no {EITHER}"


def signature_of(meta_graph: Any, name: str) -> Signature:
    """A signature of a MetaGraphDef.

    Raises:
      OptionError: there is none of that name, or its inputs are of a kind that cannot be sent.
    """
    signatures = meta_graph.signature_def
    usable = [each for each in signatures if not each.startswith("__")]
    if name not in signatures:
        raise OptionError(
            f"the SavedModel has no signature {name!r}; it has {_named(sorted(usable)) or 'none'}"
        )
    signature = signatures[name]
    if not signature.outputs:
        raise OptionError(f"signature {name!r} has no outputs, so there is no answer to wait for")
    inputs = tuple(_input(end, signature.inputs[end]) for end in sorted(signature.inputs))
    outputs = list(_outputs(signature.outputs))
    return Signature(
        name=name,
        inputs=inputs,
        outputs=tuple(output for output, _, _ in outputs),
        fetches=tuple(tensor for _, tensor, _ in outputs),
        output_kinds=tuple(kind for _, _, kind in outputs),
    )


def _input(name: str, info: Any) -> Input:
    return Input(
        name=name,
        kind=info.dtype,
        shape=_shape(info.tensor_shape),
        tensors=_tensors(name, info),
    )


def _outputs(infos: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """The names of outputs, the tensors of each, and the numbers of their types."""
    for name in sorted(infos):
        tensors, kind = _tensors(name, infos[name]), infos[name].dtype
        if len(tensors) == 1:
            yield name, tensors[0], kind
            continue
        names = [f"{name}/{part}" for part in _SPARSE]
        yield from zip(names, tensors, (_INT64, kind, _INT64), strict=True)


def _tensors(name: str, info: Any) -> tuple[str, ...]:
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        return (
            sparse.indices_tensor_name,
            sparse.values_tensor_name,
            sparse.dense_shape_tensor_name,
        )
    if encoding != "name":
        raise OptionError(
            f"{name!r} of the signature is a {encoding or 'nameless'} tensor; only dense and "
            "sparse ones can be sent"
        )
    return (info.name,)


def _shape(shape: Any) -> tuple[int | None, ...] | None:
    if shape.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else dim.size for dim in shape.dim)


def _dim(size: int | None) -> str:
    return "?" if size is None else str(size)


def _named(names: Sequence[str] | Iterator[str]) -> str:
    return ", ".join(repr(name) for name in names)

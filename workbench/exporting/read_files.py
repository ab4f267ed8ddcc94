"""Graphs and functions → the files that their nodes read, as far as constants name them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

import tensorflow as tf

from workbench.core.graph.graph_view import node_name
from workbench.core.tf_graph.inlined_calls import CALLS

# The input of each op that names files.
_FILE_INPUT = {
    **dict.fromkeys(("InitializeTableFromTextFile", "InitializeTableFromTextFileV2"), 1),
    **dict.fromkeys(
        (
            *("ReadFile", "TextLineDataset", "TFRecordDataset", "TFRecordDatasetV2"),
            *("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2", "LMDBDataset"),
            *("CSVDataset", "CSVDatasetV2", "ExperimentalCSVDataset", "ExperimentalLMDBDataset"),
            *("MatchingFiles", "MatchingFilesDataset"),
        ),
        0,
    ),
}
# Their outputs have the names that they are given.
_HANDS_ON = frozenset(
    {
        *("Identity", "IdentityN", "ExpandDims", "Reshape", "Squeeze", "Pack", "ConcatV2"),
        *("TensorSliceDataset", "TensorDataset"),
    }
)
# What calls a function for each element of its first input.
_OF_ELEMENTS = re.compile(r"(Parallel|Legacy)*(FlatMap|Interleave|Map)Dataset(V\d)?$")
_PATTERNS = frozenset({"MatchingFiles", "MatchingFilesDataset"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class FileRead:
    """A node that reads files.

    Attributes:
      node: its name.
      place: number of the input that names the files.
      constants: names of the constants that do so; None where the names are computed of constants.
    """

    node: str
    place: int
    constants: tuple[str, ...] | None


def file_reads(nodes: Mapping[str, Any], functions: Mapping[str, Any]) -> Iterator[FileRead]:
    """The nodes that read files, or whose functions do, of which no input has the names.

    Args:
      nodes: of a graph, or of a function, by name.
      functions: those of the graph, by name.
    """
    for name, node in nodes.items():
        for place in _file_inputs(node, functions):
            text = node.input[place]
            constants = None if node.op in _PATTERNS else _constants(nodes, text)
            if constants is not None or _is_constant(nodes, text):
                yield FileRead(node=name, place=place, constants=constants)


def _file_inputs(node: Any, functions: Mapping[str, Any]) -> Iterator[int]:
    """Numbers of the inputs of a node that name files, or have elements that do."""
    if node.op in _FILE_INPUT:
        yield _FILE_INPUT[node.op]
        return
    is_call = node.op in CALLS
    function = functions.get(node.attr["f"].func.name) if "f" in node.attr else None
    if function is None or not (is_call or _OF_ELEMENTS.match(node.op)):
        return
    arguments = {arg.name: place for place, arg in enumerate(function.signature.input_arg)}
    places = sorted(arguments[name] for name in _named_by(function, arguments, functions))
    yield from places if is_call else places[:1] and [0]


def _named_by(function: Any, arguments: Container[str], functions: Mapping[str, Any]) -> set[str]:
    """The arguments of a function by which it names files."""
    nodes = {node.name: node for node in function.node_def}
    seen = set[str]()
    waiting = [
        node.input[place] for node in function.node_def for place in _file_inputs(node, functions)
    ]
    while waiting:
        name = node_name(waiting.pop())
        if name not in seen:
            seen.add(name)
            waiting += nodes[name].input if name in nodes else ()
    return {name for name in seen if name in arguments}


def paths_in(constant: Any) -> list[str]:
    """The strings of a constant."""
    values = tf.make_ndarray(constant.attr["value"].tensor).ravel().tolist()
    return [tf.compat.as_str_any(value) for value in values]


def _constants(nodes: Mapping[str, Any], text: str) -> tuple[str, ...] | None:
    """The constants of strings that a tensor hands on; None where it does anything else."""
    node = nodes.get(node_name(text))
    if node is None:
        return None
    if node.op == "Const":
        is_text = node.attr["dtype"].type == tf.string.as_datatype_enum
        return (node.name,) if is_text else ()
    if node.op not in _HANDS_ON:
        return None
    found: list[str] = []
    for each in node.input:
        below = () if each.startswith("^") else _constants(nodes, each)
        if below is None:
            return None
        found += below
    return tuple(dict.fromkeys(found))


def _is_constant(nodes: Mapping[str, Any], text: str) -> bool:
    """Whether a tensor depends on nothing but constants."""
    seen, waiting = set[str](), [text]
    while waiting:
        name = node_name(waiting.pop())
        node = nodes.get(name)
        if node is None or node.op.startswith(("Placeholder", "_Arg", "VarHandleOp", "ReadVar")):
            return False
        if name not in seen:
            seen.add(name)
            waiting += node.input
    return True

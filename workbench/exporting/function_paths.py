"""Functions that read files by constant paths → functions that are given the paths of assets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from workbench.core.tf_graph.inlined_calls import CALLS, called_by
from workbench.exporting.new_paths import STRING, NewPaths
from workbench.exporting.read_files import FileRead, file_reads

# Of functions that others differentiate: those know how many arguments there are.
_DIFFERENTIATED = ("_gradient_op_type", "forward_function_name", "backward_function_name")
_STAYS = "{node!r} of function {function!r} names it, which {why}; give it a tf.saved_model.Asset"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Given:
    """A path of an asset, as a model has it.

    Attributes:
      tensor: of its graph.
      object: number among its objects; None where it has none.
    """

    tensor: str
    object: int | None


def give_paths(
    meta: Any, asset_of: Callable[[str], str], leave: Callable[[str, str], None]
) -> dict[str, list[str]]:
    """Gives functions an argument for each path by which they, or those that they call, read files.

    What calls a function gets these arguments in its turn, but not the graph's nodes.

    Args:
      meta: a meta graph, of which the functions are changed.
      asset_of: the name of the asset of a path; "" where there is none.
      leave: notes a path that stays, with the reason.

    Returns:
      By function the paths that it is given, in order, behind its other arguments.
    """
    functions = {each.signature.name: each for each in meta.graph_def.library.function}
    fixed = _fixed(meta, functions)
    moved: dict[str, list[FileRead]] = {}
    named: dict[str, list[str]] = {}
    for name, function in functions.items():
        for read, paths in _reads_of(function, functions):
            if name in fixed:
                for path in paths:
                    leave(path, _STAYS.format(node=read.node, function=name, why=fixed[name]))
            elif not [path for path in paths if not asset_of(path)]:
                moved.setdefault(name, []).append(read)
                named.setdefault(name, []).extend(paths)
    needs = _with_callers(functions, named)
    for name, paths in needs.items():
        _give(functions[name], paths, moved.get(name, []), needs)
    return needs


def pass_paths(node: Any, paths: Mapping[str, list[str]], tensors: Mapping[str, str]) -> None:
    """Has a call pass the paths on that its function is given.

    Args:
      node: of a graph or a function.
      paths: by function, as `give_paths` returns them.
      tensors: where it is the path is, by each.
    """
    called = node.attr["f"].func.name if node.op in CALLS else ""
    if called not in paths:
        return
    waits = [text for text in node.input if text.startswith("^")]
    given = [text for text in node.input if not text.startswith("^")]
    node.input[:] = [*given, *(tensors[path] for path in paths[called]), *waits]
    node.attr["Tin"].list.type.extend([STRING] * len(paths[called]))


def _reads_of(function: Any, functions: Mapping[str, Any]) -> Iterator[tuple[FileRead, list[str]]]:
    """The nodes of a function that read files by paths of its own, and the paths of each."""
    nodes = NewPaths(function.node_def)
    for read in file_reads(nodes.nodes, functions):
        if paths := nodes.paths_of(read):
            yield read, paths


def _fixed(meta: Any, functions: Mapping[str, Any]) -> dict[str, str]:
    """The functions whose arguments cannot be more, each with the reason, a clause."""
    fixed: dict[str, str] = {}
    bodies = [meta.graph_def.node, *(each.node_def for each in functions.values())]
    for node in (node for body in bodies for node in body):
        if node.op not in CALLS:
            fixed |= dict.fromkeys(called_by(node), f"{node.op} calls")
    for name, function in functions.items():
        if any(key in function.attr for key in _DIFFERENTIATED):
            fixed[name] = "is differentiated"
    for gradient in meta.graph_def.library.gradient:
        fixed |= dict.fromkeys(
            (gradient.function_name, gradient.gradient_func), "is differentiated"
        )
    waiting = list(fixed)
    while waiting:
        # They cannot pass on what they are not given.
        for node in functions[name].node_def if (name := waiting.pop()) in functions else ():
            for called in called_by(node):
                if called not in fixed:
                    fixed[called] = f"function {name!r} calls"
                    waiting.append(called)
    return fixed


def _with_callers(
    functions: Mapping[str, Any], own: Mapping[str, Iterable[str]]
) -> dict[str, list[str]]:
    """By function the paths that it needs, or that those need which it calls."""
    needs = {name: dict.fromkeys(paths) for name, paths in own.items()}
    known = -1
    while known != sum(map(len, needs.values())):
        known = sum(map(len, needs.values()))
        for name, function in functions.items():
            for node in function.node_def:
                for called in called_by(node) if node.op in CALLS else ():
                    if called in needs:
                        needs.setdefault(name, {}).update(needs[called])
    return {name: list(paths) for name, paths in needs.items()}


def _give(
    function: Any, paths: list[str], reads: list[FileRead], needs: Mapping[str, list[str]]
) -> None:
    signature = function.signature
    new = NewPaths(function.node_def, {arg.name for arg in signature.input_arg}, ":output:0")
    arguments = {path: new.free(f"asset_path_{number}") for number, path in enumerate(paths)}
    for name in arguments.values():
        signature.input_arg.add(name=name, type=STRING)
    if "_input_shapes" in function.attr:
        for _ in paths:
            function.attr["_input_shapes"].list.shape.add()
    for read in reads:
        new.put(read, arguments)
    for node in function.node_def:
        pass_paths(node, needs, arguments)

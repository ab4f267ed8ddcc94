"""Whether what a run gives depends on its schedule: two ops touch a variable in no order."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
# These pass a variable on, or ask for no number of it.
_PASSES = frozenset({"Identity", "Switch", "RefSwitch", "Enter", "RefEnter", "RefIdentity"})
_ASKS = frozenset({"VariableShape", "VarIsInitializedOp", "Shape", "IsVariableInitialized"})
# The result of these may be the memory of a ref variable.
_ALIASES = _PASSES | {"Reshape", "Squeeze", "ExpandDims", "StopGradient", "Merge"}
_VARIABLES = frozenset({"VarHandleOp", "VariableV2", "Variable"})


class Order:
    """What each op of a graph touches, so that runs can be asked for.

    Args:
      graph: a finished graph.
    """

    def __init__(self, graph: tf.Graph) -> None:
        self.graph = graph
        self._ops = graph.get_operations()
        self._touched = self._touches()

    def executed(self, fetches: Iterable[str], feeds: Iterable[str]) -> set[tf.Operation]:
        """The ops that a run needs."""
        fed, found = frozenset(feeds), set()
        waiting = [self._op(name) for name in fetches if name not in fed]
        while waiting:
            op = waiting.pop()
            if op not in found:
                found.add(op)
                waiting += [tensor.op for tensor in op.inputs if tensor.name not in fed]
                waiting += op.control_inputs
        return found

    def reads_input(self, fetches: Iterable[str]) -> bool:
        """Whether a run takes a batch from an iterator."""
        return any(op.type == "IteratorGetNext" for op in self.executed(fetches, ()))

    def racing(self, fetches: Sequence[str], feeds: Sequence[str] = ()) -> list[str]:
        """Names of variables that one op changes while another one touches them."""
        executed = self.executed(fetches, feeds)
        touching: dict[str, list[tuple[tf.Operation, bool]]] = {}
        for op in executed:
            for name, writes in self._touched.get(op.name, ()):
                touching.setdefault(name, []).append((op, writes))
        touching = {
            name: ops
            for name, ops in touching.items()
            if len(ops) > 1 and any(writes for _, writes in ops)
        }
        if not touching:
            return []
        marked = {op.name for ops in touching.values() for op, _ in ops}
        bits = {name: 1 << number for number, name in enumerate(sorted(marked))}
        behind = self._behind(executed, bits, feeds)
        return sorted(name for name, ops in touching.items() if _unordered(ops, behind, bits))

    def behind(self, name: str) -> set[str]:
        """Names of the ops that depend on a tensor."""
        found: set[str] = set()
        waiting = list(self.graph.get_tensor_by_name(name).consumers())
        while waiting:
            op = waiting.pop()
            if op.name not in found:
                found.add(op.name)
                waiting += [each for tensor in op.outputs for each in tensor.consumers()]
                waiting += self._waiting.get(op.name, ())
        return found

    @functools.cached_property
    def _waiting(self) -> dict[str, list[tf.Operation]]:
        found: dict[str, list[tf.Operation]] = {}
        for op in self._ops:
            for each in op.control_inputs:
                found.setdefault(each.name, []).append(op)
        return found

    def _op(self, name: str) -> tf.Operation:
        return self.graph.get_operation_by_name(name.split(":")[0])

    def _touches(self) -> dict[str, list[tuple[str, bool]]]:
        """Of each op the variables that it touches, and whether it may change them."""
        carries: dict[str, frozenset[str]] = {}
        found: dict[str, list[tuple[str, bool]]] = {}
        for op in self._ops:
            if op.type in _VARIABLES:
                carries[op.name] = frozenset({op.name})
                continue
            given = [
                (name, tensor) for tensor in op.inputs for name in carries.get(tensor.op.name, ())
            ]
            if not given:
                continue
            is_handle = any(tensor.dtype == tf.resource for _, tensor in given)
            names = frozenset(name for name, _ in given)
            # What updates a ref variable gives the variable.
            gives_ref = any(is_ref(each) for each in op.outputs)
            if gives_ref or op.type in (_PASSES if is_handle else _ALIASES):
                carries[op.name] = names
            if op.type not in _ASKS and not (is_handle and op.type in _PASSES):
                found[op.name] = [(name, _writes(op, is_handle, tensor)) for name, tensor in given]
        return found

    def _behind(
        self, executed: set[tf.Operation], bits: dict[str, int], feeds: Sequence[str]
    ) -> dict[str, int]:
        """Of each executed op which of the marked ones it waits for, as bits."""
        fed, found = frozenset(feeds), {}
        for op in self._ops:
            if op in executed:
                before = [tensor.op for tensor in op.inputs if tensor.name not in fed]
                mask = 0
                for each in [*before, *op.control_inputs]:
                    mask |= found.get(each.name, 0) | bits.get(each.name, 0)
                found[op.name] = mask
        return found


def _writes(op: tf.Operation, is_handle: bool, tensor: Any) -> bool:
    if is_handle:
        return op.type not in _READS
    return is_ref(tensor) and any(argument.is_ref for argument in op.op_def.input_arg)


def is_ref(tensor: tf.Tensor) -> bool:
    """Whether a tensor is the memory of a ref variable."""
    return bool(tensor.dtype != tensor.dtype.base_dtype)


def _unordered(
    ops: list[tuple[tf.Operation, bool]], behind: dict[str, int], bits: dict[str, int]
) -> bool:
    return any(
        (writes or too)
        and not behind[one.name] & bits[other.name]
        and not behind[other.name] & bits[one.name]
        for number, (one, writes) in enumerate(ops)
        for other, too in ops[:number]
    )

"""What a stage reads its items from: no other stage of the graph may read the same op.

Each stage runs the op for itself. What two stages deliver to one step would then be of two batches:
features of one and labels of another.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from workbench.core.graph.op_types import SOURCES
from workbench.errors import OptionError

# Give another value in every run. As in native/rewriting/restart/source_reads.cc.
NEW_EACH_RUN = SOURCES | frozenset(
    {
        *("EagerPyFunc", "PyFunc"),
        *("IteratorGetNextAsOptional", "MultiDeviceIteratorGetNextFromShard"),
        *("LogUniformCandidateSampler", "Multinomial", "ParameterizedTruncatedNormal"),
        *("RandomGamma", "RandomPoisson", "RandomPoissonV2", "RandomShuffle"),
        *("RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"),
        *("UniformCandidateSampler",),
    }
)
# Calls a function, which may have such an op in it.
_CALL = "StatefulPartitionedCall"
# By graph, the stage of each op that stages read.
_READ: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()


def note_sources(
    graph: tf.Graph, stage: str, record: Iterable[tf.Tensor], fed: Iterable[tf.Tensor]
) -> None:
    """Notes what a new stage reads.

    Args:
      graph: the graph of the stage.
      stage: its name.
      record: the tensors of its items.
      fed: the tensors that its producers evaluate in a run of its own before each item.

    Raises:
      OptionError: another stage of the graph reads the same op, or a fed tensor does so too.
    """
    read, of_feeds = _sources(record), _sources(fed)
    for source in sorted(read & of_feeds):
        raise OptionError(
            f"stage {stage!r} reads {_described(graph, source)}, and so does a value of its "
            "feed_dict, which is evaluated in a run of its own: the two belong to two batches; "
            "stage the value with the features instead of feeding it"
        )
    known = _READ.setdefault(graph, {})
    for source in sorted(read | of_feeds):
        if source in known:
            raise OptionError(
                f"stages {known[source]!r} and {stage!r} both read {_described(graph, source)}: "
                "each takes batches of its own, so that what they deliver to a step does not "
                "belong together; stage both in one call: wb.staged((features, labels))"
            )
    known.update(dict.fromkeys(read | of_feeds, stage))


def reads_several(graph: tf.Graph, stage: str) -> bool:
    """Whether a stage that was built in the graph reads more than one op for each item."""
    return list(_READ.get(graph, {}).values()).count(stage) > 1


def _sources(tensors: Iterable[tf.Tensor]) -> frozenset[str]:
    """Names of the ops upstream of some tensors that give another value in every run."""
    open_ = [tensor.op for tensor in tensors]
    seen = {op.name: op for op in open_}
    while open_:
        op = open_.pop()
        for before in (*(tensor.op for tensor in op.inputs), *op.control_inputs):
            if before.name not in seen:
                seen[before.name] = before
                open_.append(before)
    return frozenset(name for name, op in seen.items() if _is_new_each_run(op))


def _is_new_each_run(op: tf.Operation) -> bool:
    if op.type != _CALL:
        return op.type in NEW_EACH_RUN
    open_, seen = [op.get_attr("f").name], set()
    while open_:
        name = open_.pop()
        if name in seen or not op.graph._is_function(name):
            continue
        seen.add(name)
        for node in op.graph._get_function(name).cached_definition.node_def:
            if node.op in NEW_EACH_RUN:
                return True
            if node.op == _CALL:
                open_.append(node.attr["f"].func.name)
    return False


def _described(graph: tf.Graph, name: str) -> str:
    return f"{name!r} ({graph.get_operation_by_name(name).type})"

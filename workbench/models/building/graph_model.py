"""The parts of a model's program, from how its lines are parsed and how it trains on a batch.

The stage stands right behind the parsed batch, so that hashing and lookups stay in the step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from workbench.core.optimizations import Optimizations
from workbench.experiments.program.program import Built
from workbench.models.building.graph_input import fingerprint, next_lines, stage
from workbench.models.building.layers import model_scope
from workbench.models.building.model_options import ModelOptions
from workbench.models.data.dataset import parse_rows

v1 = tf.compat.v1

Batch = dict[str, Any]


class Trained(NamedTuple):
    """What a model trains on a batch.

    Attributes:
      loss: scalar.
      label: 1 for a click, else 0, float32 [batch].
      logits: of a click, float32, one for each row.
    """

    loss: tf.Tensor
    label: tf.Tensor
    logits: tf.Tensor


@dataclasses.dataclass(frozen=True, kw_only=True)
class GraphModel:
    """A model in the graph: each method builds one part of its program in the current graph.

    Attributes:
      name: the variable scope of its weights.
      parse: lines, string [batch] → the columns of the batch, by name.
      probability: a batch → chance of a click, float32 [batch]; called in the model's scope, where
        the weights are made, or found again.
      trained: a batch → its loss, and from what; called in the model's scope as well.
      minimize: loss, options → the op that changes the weights and counts the global step.
    """

    name: str
    parse: Callable[[tf.Tensor], Batch]
    probability: Callable[[Batch], tf.Tensor]
    trained: Callable[[Batch], Trained]
    minimize: Callable[[tf.Tensor, Any], Any]

    def build(self, options: ModelOptions, optimizations: Optimizations) -> Built:
        """Training on the endless, repeated data."""
        return self.train(options, stage(self.batch(options), optimizations))

    def build_epoch(self, options: ModelOptions, optimizations: Optimizations) -> Built:
        """What only reads, once through the data, and tells batches apart by a fingerprint."""
        at_once = dataclasses.replace(options, input_latency_ms=0.0)
        batch = stage(self.batch(at_once, endless=False), optimizations)
        found = fingerprint(batch)
        return Built(train_op=found.op, fingerprint=found)

    def build_input(self, options: ModelOptions, optimizations: Optimizations) -> Built:
        """A step that only waits for a batch of lines: its time is T_input.

        The prefetch hides what a session run costs, which is no part of the input.
        """
        del optimizations
        return Built(train_op=self.lines(options, overlap=lambda lines: lines.prefetch(1)).op)

    def build_compute(self, options: ModelOptions, optimizations: Optimizations) -> Built:
        """Un-staged training on lines that lie ready in memory: its time is T_compute."""
        del optimizations
        return self.train(options, self.batch(options, held=True))

    def batch(self, options: ModelOptions, *, endless: bool = True, held: bool = False) -> Batch:
        """The next parsed batch of the run's data, whatever its container."""
        rows = self.lines(options, endless=endless, held=held)
        if options.data.container == "tfrecord":
            return parse_rows(rows, options.data)
        return self.parse(rows)

    def lines(
        self,
        options: ModelOptions,
        *,
        endless: bool = True,
        held: bool = False,
        overlap: Callable[[Any], Any] = lambda dataset: dataset,
    ) -> Any:
        """The next batch of rows of the run's data; see `input.next_lines`."""
        return next_lines(
            options.data,
            batch_size=options.batch_size,
            input_latency_ms=options.input_latency_ms,
            endless=endless,
            held=held,
            overlap=overlap,
        )

    def train(self, options: ModelOptions, batch: Batch) -> Built:
        """Model, loss and update on a parsed batch."""
        with model_scope(self.name, options.seed):
            trained = self.trained(batch)
        return Built(
            train_op=self.minimize(trained.loss, options),
            loss=trained.loss,
            config=repeatable_config(),
            labels=trained.label,
            # AUC reads their order alone, which is that of the chances.
            scores=trained.logits,
        )

    def score(self, options: ModelOptions, batch: Batch) -> tf.Tensor:
        """The chance of a click of each row, float32 [batch], by the weights that train."""
        with model_scope(self.name, options.seed):
            return self.probability(batch)


def repeatable_config() -> Any:
    """The config of sessions that give the same losses to the bit whenever they run.

    In a large graph TensorFlow's memory optimizer would sum the gradients of one tensor in the
    order in which they come.
    """
    config = v1.ConfigProto()
    off = rewriter_config_pb2.RewriterConfig.NO_MEM_OPT
    config.graph_options.rewrite_options.memory_optimization = off
    return config

"""DeepRec's SmartStage switches: `tf.SmartStageOptions` and the fields that turn it on."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from workbench.compat.staging import exception_types
from workbench.core.options import SmartStageOptions as Wishes
from workbench.core.smart_stage import log_plan, prepare_config
from workbench.core.staging.error_codes import with_codes
from workbench.errors import NoInputError, OptionError

_LOG = logging.getLogger("workbench")
_warned: set[str] = set()


class SmartStageOptions:
    """Options of a smart stage, with DeepRec's parameters.

    They take effect where `config.graph_options.optimizer_options.smart_stage_options.CopyFrom`
    is given them and `do_smart_stage` is on. No `tf.staged` is needed: the iterator, queue or
    reader that a step reads is found by itself.

    Args:
      capacity: most items held ahead.
      num_threads: threads that produce items; more than one makes their order vary.
      num_clients: consumers at a time; any number is served.
      timeout_millis: how long one put waits for room before it warns; no batch is dropped.
      closed_exception_types, ignored_exception_types: as in `tf.staged`.
      use_stage_subgraph_thread_pool, stage_subgraph_thread_pool_id, stage_subgraph_stream_id: as
        in `tf.staged`.
      graph: the graph to stage; only the default graph, or None for it.
      name: name of the stage; None makes "smart_stage".

    Raises:
      OptionError: a value outside its range, or another graph than the default one.
    """

    def __init__(
        self,
        capacity: int = 1,
        num_threads: int = 1,
        num_clients: int = 1,
        timeout_millis: int = 300_000,
        closed_exception_types: Sequence[Any] | None = (tf.errors.OUT_OF_RANGE,),
        ignored_exception_types: Sequence[Any] = (),
        use_stage_subgraph_thread_pool: bool = False,
        stage_subgraph_thread_pool_id: int = 0,
        stage_subgraph_stream_id: int = 0,
        graph: Any = None,
        name: str | None = None,
    ) -> None:
        if num_clients < 1:
            raise OptionError(
                f"SmartStageOptions.num_clients is {num_clients!r}; expected at least 1"
            )
        if graph is not None and graph is not tf.compat.v1.get_default_graph():
            raise OptionError(
                "SmartStageOptions was given another graph than the default one; a session stages "
                "its own graph, so leave the parameter out"
            )
        wished = Wishes(
            capacity=capacity,
            num_threads=num_threads,
            reorder=num_threads > 1,
            timeout_millis=timeout_millis,
            closed_exception_types=exception_types(closed_exception_types),
            ignored_exception_types=exception_types(ignored_exception_types) or (),
            use_stage_subgraph_thread_pool=use_stage_subgraph_thread_pool,
            stage_subgraph_thread_pool_id=stage_subgraph_thread_pool_id,
            stage_subgraph_stream_id=stage_subgraph_stream_id,
            name=name or "smart_stage",
        )
        self.wishes: Wishes = with_codes(wished)

    def __repr__(self) -> str:
        return f"SmartStageOptions({self.wishes!r})"


class SmartStageField:
    """The message field `smart_stage_options` of a ConfigProto."""

    def __init__(self) -> None:
        self.wishes: Wishes | None = None

    def CopyFrom(self, other: Any) -> None:  # noqa: N802 (protobuf's name)
        """Takes the options over.

        Raises:
          OptionError: not SmartStageOptions.
        """
        if not isinstance(other, (SmartStageOptions, SmartStageField)):
            raise OptionError(
                f"smart_stage_options was given {other!r} of type {type(other).__name__}; "
                "expected tf.SmartStageOptions(…)"
            )
        self.wishes = other.wishes


def wishes(on: bool, on_gpu: bool, field: SmartStageField) -> Wishes | None:
    """What the three switches of a ConfigProto ask for; None without SmartStage."""
    if not (on or on_gpu):
        return None
    chosen = field.wishes or Wishes()
    if on_gpu and not tf.config.list_physical_devices("GPU"):
        if "no GPU" not in _warned:
            _warned.add("no GPU")
            _LOG.warning(
                "do_smart_stage_gpu: this machine has no GPU, so it behaves as do_smart_stage"
            )
    elif on_gpu:
        chosen = dataclasses.replace(chosen, on_cpu=True)
    return chosen


def with_smart_stage(config: Any, chosen: Wishes | None, graph: tf.Graph | None) -> Any:
    """The stock config with a plan for `graph` in it, where one is asked for and possible.

    As in DeepRec a graph without any input is left alone, with a warning; one with several is not.

    Raises:
      PlanError: the graph has several inputs; the message names them.
    """
    if chosen is None or graph is None:
        return config
    try:
        prepared, plan = prepare_config(graph, config, chosen)
    except NoInputError as error:
        _LOG.warning("do_smart_stage: the graph is left as it is: %s", error)
        return config
    log_plan(plan)
    return prepared

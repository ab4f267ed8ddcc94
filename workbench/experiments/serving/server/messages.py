"""Messages between a measurement of a served model and its child processes.

They travel pickled between processes of one user and are never saved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from workbench.core.optimizations import Optimizations
from workbench.experiments.serving.points import Load, LoadBlock, RequestSpan
from workbench.experiments.worker.wire.messages import Command

# The arrays that are fed, in the order of the signature's feeds.
Request = tuple[np.ndarray, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RequestSet:
    """The requests that all variants are sent.

    Attributes:
      by_rows: requests by how many rows they have; 0 where that is as it comes.
      made_from: where they came from, a sentence.
    """

    by_rows: Mapping[int, tuple[Request, ...]]
    made_from: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Loaded:
    """What is known of a model once its sessions run.

    Attributes:
      memory_bytes: what all of it took.
      sessions: how many.
      steps_at_once: the most steps that run at one time; 0 is any number.
      fused_ops: parts of its graph that are fused.
    """

    memory_bytes: int
    sessions: int
    steps_at_once: int
    fused_ops: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class RanLoad:
    """What one block of a load gave.

    Attributes:
      block: its numbers.
      unsent: requests of an open loop that were given up, among the failed ones.
      first_error: what the first failed request said.
      spans: some requests, where they were asked for.
    """

    block: LoadBlock
    unsent: int = 0
    first_error: str = ""
    spans: tuple[RequestSpan, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answers:
    """What a sample of requests was answered.

    Attributes:
      outputs: names of what each answer has.
      values: the outputs of each request; empty of one that failed.
      errors: what each request said; "" of one that was answered.
      types: the TensorFlow type of each output, such as "bfloat16", whose values are float32 here.
    """

    outputs: tuple[str, ...]
    values: tuple[tuple[np.ndarray, ...], ...]
    errors: tuple[str, ...]
    types: tuple[str, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MakeRequests(Command[RequestSet]):
    """Reads the signature and makes requests for it; no session is loaded.

    Attributes:
      rows: how many rows requests have, in turn; empty leaves that to a function of requests.
      count: how many different requests of each.
    """

    rows: tuple[int, ...]
    count: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadModel(Command[Loaded]):
    """Loads the model with a setting, and warms it up by some requests."""

    optimizations: Optimizations
    requests: RequestSet


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunLoad(Command[RanLoad]):
    """Runs a load for some time.

    Attributes:
      load: how requests arrive.
      rows: of the requests, a key of `RequestSet.by_rows`.
      seconds: for which requests are begun.
      seed: of the arrivals of an open loop.
      with_spans: whether some requests come back.
    """

    load: Load
    rows: int
    seconds: float
    seed: int = 0
    with_spans: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswerSample(Command[Answers]):
    """Sends the first requests once and returns what they were answered."""

    rows: int
    count: int

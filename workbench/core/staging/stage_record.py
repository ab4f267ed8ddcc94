"""A traced run of a staged side, as its producer reports it."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, kw_only=True)
class StageRunRecord:
    """One traced run of the staged side.

    Attributes:
      stage: name of the stage.
      thread: number of the producer among those of the stage.
      number: of the run, counted over all producers of the stage.
      start_ns, end_ns: in ns of the wall clock.
      metadata: its `RunMetadata`; None where the ops come from elsewhere.
    """

    stage: str
    thread: int
    number: int
    start_ns: int
    end_ns: int
    metadata: Any = None

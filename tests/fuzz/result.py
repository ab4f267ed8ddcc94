"""Result: what became of one program."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.fuzz.compare import Difference


@dataclasses.dataclass(kw_only=True)
class Result:
    """What became of one program.

    Attributes:
      program: its description, with names for what its runs fetch and feed.
      fused: how much was done in another way; 0 where nothing was.
      staged: how many stages ran.
      differences: between stock and rewritten; empty where they are alike.
      steps: how many runs were compared.
      raced: runs that were left out, since two ops touch a variable in no order.
      refused_feeds: runs in which a feed was an error that names it.
      refused_edits: 1 where an old plan was an error.
      edits: 1 where an old plan was tried.
      varied: values that stock does not give twice, or not with rounded variables.
      skipped: why it did not run at all; "" where it did.
    """

    program: Any
    fused: int = 0
    staged: int = 0
    differences: list[Difference] = dataclasses.field(default_factory=list)
    steps: int = 0
    raced: int = 0
    refused_feeds: int = 0
    refused_edits: int = 0
    edits: int = 0
    varied: int = 0
    skipped: str = ""

    def add(self, kind: str, where: str, text: str, name: str = "") -> None:
        """Adds a difference."""
        self.differences.append(Difference(kind=kind, where=where, name=name, text=text))

"""Why something of a graph stays as it is."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Refusal:
    """A lookup, batch normalization or interaction that stays as it is.

    Attributes:
      name: what users call it: the scope that it was built in; of dense ids and dots the node
        itself.
      reason: why, a clause.
    """

    name: str
    reason: str


class RefusedError(Exception):
    """Something stays; the text is the reason."""


def scope_of(name: str) -> str:
    """The scope of a node; its own name at the top."""
    return name.rpartition("/")[0] or name

"""Warnings of parameters that are accepted and have no effect here: one for each, by its name."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("workbench")
_warned: set[str] = set()


def warn_ignored(parameter: str, value: object, why: str) -> None:
    """Warns, the first time, that `parameter` was given `value` and is not followed.

    Args:
      parameter: its name with that of what takes it, as `get_embedding_variable(validate_shape)`.
      value: what was given.
      why: what happens in its place, a clause.
    """
    if parameter not in _warned:
        _warned.add(parameter)
        _LOG.warning("%s = %r has no effect: %s", parameter, value, why)

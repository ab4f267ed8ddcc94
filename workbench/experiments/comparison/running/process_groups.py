"""Memory: how many child processes may live at the same time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.experiments.program.variant import Variant

# Of what is free, for the parent and for others.
_SHARE = 0.9


def groups_that_fit(
    variants: Sequence[Variant], each_bytes: int, free: float
) -> list[list[Variant]]:
    """Variants that may live at the same time, each group with the baseline.

    Args:
      variants: the baseline first.
      each_bytes: what one process takes, about.
      free: bytes for all of them.

    Returns:
      One group where all fit; else groups of equal size, of two variants at least.
    """
    # One for the baseline, one for the session in which a variant is traced.
    others = max(1, int(_SHARE * free / max(1, each_bytes)) - 2) if free < math.inf else None
    if others is None or len(variants) - 1 <= others:
        return [list(variants)]
    count = math.ceil((len(variants) - 1) / others)
    size = math.ceil((len(variants) - 1) / count)
    rest = variants[1:]
    return [[variants[0], *rest[at : at + size]] for at in range(0, len(rest), size)]

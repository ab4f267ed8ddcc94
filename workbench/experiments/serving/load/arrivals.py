"""When the requests of an open loop arrive: drawn before the first one is sent."""

from __future__ import annotations

import numpy as np


def poisson_arrivals(rate: float, seconds: float, seed: int) -> np.ndarray:
    """Moments of arrivals that know nothing of each other, int64 ns from the begin, in order.

    Two rates with one seed have the same gaps, as multiples of their means.

    Args:
      rate: arrivals a second, on average.
      seconds: how long they go on.
      seed: of the draw.
    """
    count = max(1, round(rate * seconds))
    gaps = np.random.default_rng(seed).exponential(1e9 / rate, count)
    return np.cumsum(gaps).astype(np.int64)

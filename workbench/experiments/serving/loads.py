"""The loads of a measurement, from numbers of clients and rates."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.errors import OptionError
from workbench.experiments.serving.points import Load
from workbench.experiments.serving.rounds import OPEN_CLIENTS

_MOST_CLIENTS, _MOST_PER_S = 1024, 1e7
_UNLOADED = Load(kind="single stream")


def loads_of(clients: Sequence[int], rates: Sequence[float]) -> list[Load]:
    """The loads that are measured; one client first, since it is the unloaded model.

    Raises:
      OptionError: a number out of range, or twice.
    """
    loads = [_UNLOADED]
    for count in clients:
        if not isinstance(count, int) or not 1 <= count <= _MOST_CLIENTS:
            raise OptionError(f"clients has {count!r}; expected 1 to {_MOST_CLIENTS}")
        if count > 1:
            loads.append(Load(kind="clients", clients=count))
    for rate in rates:
        if not 0 < rate <= _MOST_PER_S:
            raise OptionError(
                f"rates has {rate!r}; expected above 0 to {_MOST_PER_S:,.0f} a second"
            )
        loads.append(Load(kind="open loop", clients=OPEN_CLIENTS, rate=float(rate)))
    twice = next((load for load in loads if loads.count(load) > 1), None)
    if twice is not None:
        raise OptionError(f"the load of {twice.label} is asked for twice; name each once")
    return loads

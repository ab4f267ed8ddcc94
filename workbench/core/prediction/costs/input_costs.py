"""Runs of an input in a trace → how long an item waits, and what it computes."""

from __future__ import annotations

import numpy as np

from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.costs.node_spans import InputSpans
from workbench.core.simulation.pipeline import Input, outside_ops

# A caller that takes out of these waits for what other threads put in.
_FILLED = ("Queue", "Unstage")
# Ends of a pipeline that have threads of their own, and what may stand behind them.
_AHEAD = ("MapAndBatch", "ParallelBatch", "ParallelInterleave", "ParallelMap", "Prefetch")
_PASSING = frozenset(
    {
        *("FinalizeDataset", "MaxIntraOpParallelismDataset", "ModelDataset", "OptimizeDataset"),
        *("OptionsDataset", "PrivateThreadPoolDataset", "RepeatDataset", "TakeDataset"),
    }
)
# An input that waits for less of the time delays nobody.
_NO_WAIT = 0.05
# A rhythm can be told from this many waits on; it must vary by less than this share of what the
# asking does.
_FEWEST_WAITS, _STEADIER = 8, 0.75
# Where an input is what bounds the steps, nearly all of them wait for it.
_MOSTLY_WAITS = 0.75


def input_cost(
    spans: InputSpans, view: GraphView, used_cores: float, step_ns: float | None
) -> Input:
    """What an item of an input costs.

    Args:
      spans: its runs.
      view: the graph.
      used_cores: cores that were busy while nothing but inputs ran.
      step_ns: time of an untraced step; None where it was not measured.
    """
    # a caller that queued behind another one has not waited for the input itself
    begin = np.maximum(spans.start_ns, np.concatenate(([0], spans.end_ns[:-1])))
    lasted = (spans.end_ns - begin).astype(float)
    every = float(np.diff(spans.end_ns).mean()) if len(lasted) > 1 else float(lasted.mean())
    ahead = bool(lasted.mean() > _NO_WAIT * every) and _is_ahead(spans, view)
    if ahead:
        # A caller that waits for what is produced all the time gets it as fast as it is produced.
        lasted = np.array([step_ns or every])
    busy = min(1.0, used_cores)
    return Input(
        waits_ns=tuple((lasted * (1 - busy)).tolist()),
        work=outside_ops(float(lasted.mean()) * busy, max(1.0, used_cores)),
        ahead=ahead,
    )


def _is_ahead(spans: InputSpans, view: GraphView) -> bool:
    """Whether an input goes on while nobody asks.

    The graph says so of queues and of pipelines that end in a prefetch. Of others the trace does:
    who comes later then waits for so much less, so that items arrive in a steadier rhythm than
    they are asked for. Where a step does not wait for its input alone, it asks in the step's own
    rhythm, and a late item makes the time until the next question shorter.
    """
    if view.ops[spans.node].startswith(_FILLED) or _ends_in_prefetch(view, spans.node):
        return True
    away = (spans.start_ns[1:] - spans.end_ns[:-1]).astype(float)
    lasted = (spans.end_ns - spans.start_ns)[1:].astype(float)
    waited = lasted > _NO_WAIT * (away + lasted)
    if waited.sum() < max(_FEWEST_WAITS, _MOSTLY_WAITS * len(waited)) or away.min() <= 0:
        return False
    between = np.diff(spans.start_ns).astype(float)
    asked = min(_spread(away[waited]), _spread(between[waited]))
    return bool(_spread((away + lasted)[waited]) < _STEADIER * asked)


def _spread(values: np.ndarray) -> float:
    """Between the quartiles."""
    return float(np.subtract(*np.quantile(values, [0.75, 0.25])))


def _ends_in_prefetch(view: GraphView, get_next: int) -> bool:
    """Whether the last part of an iterator's pipeline that does anything has threads of its own."""
    handles = [node for node, _ in view.inputs(get_next)]
    makers = [n for h in handles for n in view.consumers.of(h) if view.ops[n] == "MakeIterator"]
    found = [node for maker in makers for node, _ in view.inputs(int(maker))[:1]]
    while found and view.ops[found[0]] in _PASSING:
        found = [node for node, _ in view.inputs(found[0])[:1]]
    return bool(found) and view.ops[found[0]].startswith(_AHEAD)

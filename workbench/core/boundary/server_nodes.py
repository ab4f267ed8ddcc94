"""Nodes on a parameter server that stay there although they need only the batch.

What runs ahead goes into the buffer, which is with the input. What only parameter servers read of
it would travel from a server to the worker ahead of the step, and in the step back to a server.
"""

from __future__ import annotations

import numpy as np

from workbench.core.boundary.inputs import Start
from workbench.core.graph.graph_view import Bools, GraphView, Ints
from workbench.core.graph.tasks import is_ps, task_of, tasks_of


def server_nodes(view: GraphView, start: Start, legal: Bools, step: Bools) -> Ints:
    """The first of the nodes that stay on their server; all that depends on them does so as well.

    Args:
      view: the graph.
      start: where the side begins.
      legal: nodes that may run ahead otherwise.
      step: nodes that a step may run.
    """
    own = task_of(view.devices[start.nodes[0]])
    there = np.array([is_ps(task) and task != own for task in tasks_of(view.devices)], bool)
    far = there & legal
    if not far.any():
        return np.zeros(0, int)
    edges = np.concatenate((view.data[:, [0, 2]], view.control))
    source, target = edges[far[edges[:, 0]] & step[edges[:, 1]]].T
    needed_here = view.ancestors(view.mask(source[~there[target]]), within=legal)
    stays = far & ~needed_here
    behind = view.mask(target[stays[source] & stays[target]])
    return np.flatnonzero(stays & ~behind)

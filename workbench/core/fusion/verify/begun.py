"""Graph → a session of it whose variables are as their initializers make them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from workbench.core.fusion.verify.inputs import first_line
from workbench.errors import OptionError

v1 = tf.compat.v1
_OF_VARIABLES = (v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.LOCAL_VARIABLES)


@contextlib.contextmanager
def begun_session(graph: Any) -> Iterator[Any]:
    """Initializes the variables that the graph's collections have; no node is added to it.

    Raises:
      OptionError: they cannot be initialized.
    """
    initializers = {
        each.initializer.name: each.initializer
        for key in _OF_VARIABLES
        for each in graph.get_collection(key)
    }
    with v1.Session(graph=graph) as session:
        try:
            session.run(list(initializers.values()))
        except tf.errors.OpError as error:
            raise OptionError(
                f"the variables of {graph!r} cannot be initialized by themselves: "
                f"{first_line(error)}; verify with a session in which they are"
            ) from None
        yield session

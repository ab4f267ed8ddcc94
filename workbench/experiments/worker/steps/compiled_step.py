"""What XLA says of a step that it cannot compile."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from workbench.errors import OptionError

_REFUSED = re.compile(r"(Detected unsupported operations|tf2xla conversion failed)[^\n]*")
# What it writes among its words: attributes of a function, and names of nodes.
_NOISE = re.compile(r"\[(_XlaMustCompile|config_proto)?[^\]]*\]|\{\{node [^}]*\}\}")
_LONGEST = 500


@contextlib.contextmanager
def compiling(who: str) -> Iterator[None]:
    """Runs what XLA compiles.

    Args:
      who: what an error begins with.

    Raises:
      OptionError: XLA cannot; with TensorFlow's own sentence.
    """
    try:
        yield
    except (ValueError, tf.errors.OpError) as error:
        said = _REFUSED.search(str(error))
        if said is None:
            raise
        words = " ".join(_NOISE.sub("", said[0]).split())[:_LONGEST]
        raise OptionError(f"{who}: XLA cannot compile the step: {words}") from error


def require_compiles(who: str, function: Any, element: Any) -> None:
    """Requires that XLA can compile a tf.function for an element, without running it.

    Args:
      who: what an error begins with.
      function: the tf.function.
      element: what it is called with.

    Raises:
      OptionError: it cannot.
    """
    with compiling(who):
        try:
            function.experimental_get_compiler_ir(*element)(stage="hlo")
        except (ValueError, TypeError, tf.errors.OpError) as error:
            # What else goes wrong here is no word about the step, which is run later.
            if _REFUSED.search(str(error)):
                raise

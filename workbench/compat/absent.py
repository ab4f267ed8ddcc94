"""What of tf.contrib is not here, refused by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from workbench.errors import UnsupportedError


def absent(module: str, offered: Sequence[str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module that stands for `module` and has the names `offered`."""

    def refuse(name: str) -> Any:
        # Python itself asks for names with underscores to learn whether they are there.
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(
            f"{module}.{name} is not available; workbench has {', '.join(sorted(offered))} of "
            f"{module}. Use tf.feature_column and tf.compat.v1, which took over most of tf.contrib"
        )

    return refuse

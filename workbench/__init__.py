"""See, stage and measure a recommender's training step on stock TensorFlow.

Importing this package loads neither TensorFlow nor the native library nor a widget stack; each
public name loads what it needs when it is first used. The stub beside this file lists them, for
type checkers, editors and this module alike.
"""

from __future__ import annotations

import ast
import importlib
import os
from typing import Any

__version__ = "0.1.0"


def _listed() -> dict[str, str]:
    """The module of each name that the stub imports."""
    with open(f"{os.path.splitext(__file__)[0]}.pyi", encoding="utf-8") as stub:
        imports = [node for node in ast.parse(stub.read()).body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


_HOME = _listed()
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    if _HOME[name] == __name__:
        return importlib.import_module(f"{__name__}.{name}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext workbench`: adds `%%workbench`, for a cell that builds a step."""
    importlib.import_module(f"{__name__}.magics").register(shell)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

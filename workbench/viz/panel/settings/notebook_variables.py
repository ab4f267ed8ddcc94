"""The variables of the notebook that a panel stands in."""

from __future__ import annotations

import sys
from typing import Any


def notebook_variables() -> dict[str, Any]:
    """The variables by name; none outside of a notebook."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return dict(shell.user_ns) if shell is not None else {}

"""`import workbench` is light."""

from __future__ import annotations

import subprocess
import sys

import pytest

import workbench

HEAVY = ("tensorflow", "anywidget", "ipywidgets", "pandas", "pyarrow", "plotly", "numpy")


def test_importing_loads_nothing_heavy():
    code = f"import sys, workbench; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        workbench.no_such_name  # noqa: B018

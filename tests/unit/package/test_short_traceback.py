"""An error of Workbench in a notebook: the message, the user's own lines, a way to the rest."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from workbench.errors import RunError
from workbench.own_code import own_lines

HERE = Path(__file__).resolve().parents[3]
# cells as a kernel runs them; IPython prints the errors
SHELL = """
import sys
sys.path.insert(0, {here!r})
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor")
for cell in {cells!r}:
    print("<cell>")
    shell.run_cell(cell, store_history=True)
"""


def shown(*cells: str) -> list[str]:
    """What IPython prints for each cell."""
    script = SHELL.format(here=str(HERE), cells=[textwrap.dedent(cell).strip() for cell in cells])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return [part.strip() for part in done.stdout.split("<cell>\n")[1:]]


def test_an_error_is_its_message_the_users_line_and_a_way_to_the_rest() -> None:
    first, again = shown(
        """
        import workbench as wb

        wb.SmartStageOptions(capacity=-1)
        """,
        "%tb",
    )
    assert first == (
        "OptionError: SmartStageOptions.capacity is -1; expected an integer of at least 1\n"
        "Cell In[1], line 3\n"
        "    wb.SmartStageOptions(capacity=-1)\n"
        "%tb shows the whole traceback."
    )
    assert "options.py" in again
    assert "_at_least" in again


def test_every_error_is_told_in_short_at_first() -> None:
    first, second = shown(
        "import workbench as wb\nwb.StageOptions(capacity=0)", "wb.StageOptions(capacity=-2)"
    )
    assert "Cell In[1], line 2" in first
    assert "Cell In[2], line 1" in second
    assert "options.py" not in first + second


def test_the_line_inside_the_users_own_function_is_there_too() -> None:
    (text,) = shown(
        """
        import workbench as wb

        def build():
            return wb.StageOptions(capacity=0)

        options = build()
        """
    )
    assert text.splitlines()[1:-1] == [
        "Cell In[1], line 6",
        "    options = build()",
        "Cell In[1], line 4",
        "    return wb.StageOptions(capacity=0)",
    ]


def test_the_cause_and_the_child_are_in_the_whole() -> None:
    short, whole = shown(
        """
        from workbench.errors import RunError
        error = RunError("the run ended")
        error.add_note("Traceback of the child process: deep inside")
        raise error from KeyError("the cause")
        """,
        "%tb",
    )
    assert short.splitlines()[0] == "RunError: the run ended"
    assert "deep inside" not in short
    assert "deep inside" in whole
    assert "the cause" in whole


def test_without_a_shell_the_whole_is_pythons() -> None:
    error = RunError("the run ended")
    try:
        raise error
    except RunError:
        pass
    assert error._render_traceback_()[-1] == "%tb shows the whole traceback."
    assert error._render_traceback_()[0].startswith("Traceback (most recent call last)")


def test_of_many_own_lines_the_first_and_the_innermost_are_kept() -> None:
    def deep(levels: int) -> None:
        if not levels:
            raise RunError("here")
        deep(levels - 1)

    with pytest.raises(RunError) as found:
        deep(9)
    lines = own_lines(found.value)
    assert len(lines) == 3
    assert lines[0].endswith("deep(9)")
    assert lines[-1].endswith('raise RunError("here")')
    assert lines[0].startswith(f"File {__file__}, line ")

"""Whether a checked file has the columns that a model reads."""

from __future__ import annotations

from workbench.errors import OptionError
from workbench.models.data.text_table import CheckedTable, TableFormat


def require_columns(data: CheckedTable, layout: TableFormat, model: str) -> None:
    """Refuses a file that does not begin with the columns of a format; it may have more of them.

    A file of which nothing but its lines is known is taken as it is.

    Raises:
      OptionError: the file is of another format.
    """
    found = data.layout
    if found is None:
        return
    begins = found.columns[: len(layout.columns)]
    if begins != layout.columns or found.separator != layout.separator:
        raise OptionError(
            f"{data.path} was checked as rows of {found.summary}; {model} reads {layout.summary}"
        )

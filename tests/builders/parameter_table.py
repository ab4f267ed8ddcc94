"""docs/deeprec-parameters.md, read: its sections and their rows."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
PAGE = HOME / "docs" / "deeprec-parameters.md"


@dataclasses.dataclass(frozen=True)
class Row:
    """A parameter: whether it works, the page that shows it, how it is run, its test."""

    section: str
    parameter: str
    works: str
    page: str
    run: str
    test: str


def rows() -> list[Row]:
    """The rows of all sections, in their order."""
    found, section = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:].strip("`")
        elif line.startswith("| `"):
            parameter, works, page, run, test = (cell.strip() for cell in line[1:-1].split(" | "))
            found.append(
                Row(section, parameter.strip("`"), works, page, run.strip("`"), test.strip("`"))
            )
    return found


def page_of(row: Row) -> Path:
    """The page that a row links to."""
    (target,) = re.findall(r"\]\(([^)]+)\)", row.page)
    return PAGE.parent / target

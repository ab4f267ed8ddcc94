"""The one palette: colors, patterns and letters of the op families.

Colors stand in `FAMILIES`; `css()` turns them into custom properties for both themes, and a test
recomputes contrast and distance from here. Patterns and codes are the second channel: they carry
the family where color cannot.
"""

from __future__ import annotations

import dataclasses

from workbench.core.graph.op_families import FAMILY_NAMES

DARK_TEXT = "#16181b"
LIGHT_TEXT = "#ffffff"


@dataclasses.dataclass(frozen=True)
class Family:
    """An op family: name and two-letter code, color per theme, pattern drawn by the browser."""

    name: str
    code: str
    light: str
    dark: str
    pattern: str


FAMILIES = (
    Family(FAMILY_NAMES[0], "IN", "#b08414", "#e2951f", "vertical"),
    Family(FAMILY_NAMES[1], "ID", "#736c00", "#ddd568", "slash"),
    Family(FAMILY_NAMES[2], "LK", "#1a92dd", "#38b8f2", "dots"),
    Family(FAMILY_NAMES[3], "MM", "#0d5bb5", "#4a84e4", "plain"),
    Family(FAMILY_NAMES[4], "GR", "#d063a5", "#bb689f", "backslash"),
    Family(FAMILY_NAMES[5], "UP", "#04846b", "#63e3c8", "horizontal"),
    Family(FAMILY_NAMES[6], "CP", "#8c2a10", "#e2532a", "crossed"),
    Family(FAMILY_NAMES[7], "CT", "#575a5e", "#a1a3a5", "squares"),
)
# not families: a span that waits (hatched), and the run of a whole step (a tint of the ink)
WAIT, RUN = 8, 9


def luminance(color: str) -> float:
    """Relative luminance of "#rrggbb", as WCAG 2 defines it."""
    parts = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colors, 1 to 21, as WCAG 2 defines it."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def text_on(color: str) -> str:
    """The better of the two text colors on this fill."""
    return max(LIGHT_TEXT, DARK_TEXT, key=lambda text: contrast(text, color))


def css(theme: str) -> str:
    """Custom properties of one theme: --wb-f0 … fills, --wb-t0 … the text on them.

    Args:
      theme: "light" or "dark".
    """
    fills = [getattr(family, theme) for family in FAMILIES]
    return "".join(f"--wb-f{i}:{fill};--wb-t{i}:{text_on(fill)};" for i, fill in enumerate(fills))

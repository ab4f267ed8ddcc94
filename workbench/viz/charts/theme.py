"""Inks of both themes, and the plotly templates that are made of them."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio

from workbench.errors import OptionError
from workbench.viz.style import colors

# Digits of the same width, so that numbers stand below each other.
FONT = '"Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
_PLOTLYS_OWN = "plotly"
_HEX = re.compile(r"#([0-9a-f]{6})", re.IGNORECASE)
_NAMED = {"white": "#ffffff", "black": "#000000"}
_RGB = re.compile(r"rgb\((\d+),\s*(\d+),\s*(\d+)\)")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Theme:
    """Colors of one theme, "#rrggbb".

    Attributes:
      name: "light" or "dark".
      page: below everything. ink: words and whiskers. quiet: secondary words. line: grid.
      fill: of a bar, at least 3 : 1 on the page. tint: of a band behind marks.
      accent: of what is selected; nothing else has it. harm: what is slower.
      template: that figures take.
    """

    name: str
    page: str
    ink: str
    quiet: str
    line: str
    fill: str
    tint: str
    accent: str
    harm: str
    template: Any = dataclasses.field(repr=False, compare=False, default=None)

    def family(self, number: int) -> str:
        """Color of an op family."""
        family = colors.FAMILIES[number]
        return family.dark if self.name == "dark" else family.light


def _template(theme: Theme) -> go.layout.Template:
    """Fonts, axes and legend of a theme."""
    axis = {
        "gridcolor": theme.line,
        "linecolor": theme.line,
        "zerolinecolor": theme.quiet,
        "zeroline": False,
        "tickcolor": theme.line,
        "tickfont": {"size": 11, "color": theme.quiet},
        "title": {"font": {"size": 12, "color": theme.quiet}, "standoff": 8},
        "automargin": True,
    }
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 12, "color": theme.ink},
            "paper_bgcolor": theme.page,
            "plot_bgcolor": theme.page,
            "colorway": [theme.fill, theme.ink, theme.quiet],
            "title": {"font": {"size": 15}, "x": 0, "xref": "container", "xanchor": "left"},
            "hoverlabel": {
                "bgcolor": theme.page,
                "bordercolor": theme.quiet,
                "font": {"family": FONT, "size": 12, "color": theme.ink},
                "align": "left",
                "namelength": -1,
            },
            "legend": {"font": {"size": 12}, "bgcolor": "rgba(0,0,0,0)"},
            "modebar": {
                "bgcolor": theme.page,
                "color": theme.quiet,
                "activecolor": theme.ink,
            },
            "xaxis": axis,
            "yaxis": axis,
        }
    )


def _with_template(theme: Theme) -> Theme:
    return dataclasses.replace(theme, template=_template(theme))


LIGHT = _with_template(
    Theme(
        name="light",
        page="#ffffff",
        ink="#212121",
        quiet="#757575",
        line="#e0e0e0",
        fill="#8a8a8a",
        tint="#ececec",
        accent="#1976d2",
        harm="#d32f2f",
    )
)
DARK = _with_template(
    Theme(
        name="dark",
        page="#111111",
        ink="#e0e0e0",
        quiet="#929292",
        line="#424242",
        fill="#7d7d7d",
        tint="#292929",
        accent="#2196f3",
        harm="#f44336",
    )
)
_THEMES = {"light": LIGHT, "dark": DARK}


def theme_of(name: str | None) -> Theme:
    """A theme by its name.

    Args:
      name: "light" or "dark". None takes the template that `plotly.io.templates.default` names,
        with the inks that are legible on it; the light theme where that is plotly's own.

    Raises:
      OptionError: another name.
    """
    if name is None:
        return _users_own()
    if name not in _THEMES:
        raise OptionError(f"theme is {name!r}; expected 'light', 'dark' or None")
    return _THEMES[name]


def _users_own() -> Theme:
    chosen = pio.templates.default
    if chosen in (None, _PLOTLYS_OWN):
        return LIGHT
    # A layout reads also names that are joined by "+".
    template = go.Layout(template=chosen).template
    theme = DARK if _is_dark(template.layout.paper_bgcolor) else LIGHT
    return dataclasses.replace(theme, template=template)


def _is_dark(color: str | None) -> bool:
    """Whether a page has a dark color; one that cannot be read is taken to be light."""
    text = _NAMED.get(color or "", color or "")
    numbers = _RGB.fullmatch(text)
    if numbers:
        text = "#{:02x}{:02x}{:02x}".format(*(min(255, int(each)) for each in numbers.groups()))
    return bool(_HEX.fullmatch(text)) and colors.luminance(text) < 0.18

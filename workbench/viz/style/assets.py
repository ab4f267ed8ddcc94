"""Script and style of every outlet, joined from `static/` without a bundler.

A script is one ES module. It is made of the modules that the entries of its outlets lead to.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
import zlib
from collections.abc import Sequence
from typing import Any

import jinja2

from workbench.errors import UNSEEN, visible
from workbench.viz.style import bundle, colors
from workbench.viz.style.bundle import STATIC

# The views that have rules of their own, beside the timeline and the boundary.
VIEWS = (
    "critical_path",
    "alignment",
    "before_after",
    "embedding_lens",
    "findings",
    "memory",
    "limit",
    "predictions",
    "search",
    "serving",
)
# The modules that an outlet's script begins from: their imports lead to the others.
ENTRIES = {
    "timeline": ("timeline/control/mount.js", "timeline/control/embed.js"),
    "boundary": ("boundary/mount.js", "boundary/embed.js"),
    "panel": ("panel/embed.js",),
    "report": ("report/page.js",),
    "frame": ("notebook/frame.js",),
    "opening": ("notebook/frame_open.js",),
}
_ROOT = re.compile(r"\.wb(?![\w-])")
_NOT_IN_A_SCRIPT = re.compile(f"[<>&]|{UNSEEN.pattern}")
_DARK = """\
--wb-bg:var(--jp-layout-color0,#111);--wb-up:var(--jp-layout-color1,#212121);
--wb-well:var(--jp-cell-editor-background,#212121);
--wb-ink:var(--jp-ui-font-color1,rgba(255,255,255,.87));
--wb-ink2:var(--jp-ui-font-color2,rgba(255,255,255,.54));
--wb-line:var(--jp-border-color2,#424242);--wb-line2:var(--jp-border-color1,#616161);
--wb-acc:var(--jp-brand-color1,#2196f3);--wb-on:#111;--wb-bad:var(--jp-error-color1,#f44336);
color-scheme:dark;"""
# pages of notebooks that tell their theme, whatever the system prefers; as in shared/theme.js
_THEMED = "[data-jp-theme-light] *, [data-vscode-theme-kind] *, html[theme] *"
_DARK_PAGES = (
    ':is([data-jp-theme-light="false"], [data-vscode-theme-kind$="dark"],'
    ' [data-vscode-theme-kind$="high-contrast"], html[theme="dark"])'
)
# on paper no theme of the notebook counts
_PAPER = """\
--wb-bg:#fff;--wb-up:#fff;--wb-well:#f5f5f5;--wb-ink:#000;--wb-ink2:#555;--wb-line:#ddd;
--wb-line2:#bbb;--wb-acc:#1976d2;--wb-on:#fff;--wb-bad:#d32f2f;color-scheme:light;"""
# where the user's own colors rule, pattern and code carry the family
_FORCED = """\
--wb-bg:Canvas;--wb-up:Canvas;--wb-well:Canvas;--wb-ink:CanvasText;--wb-ink2:CanvasText;
--wb-line:CanvasText;--wb-line2:CanvasText;--wb-acc:Highlight;--wb-on:HighlightText;
--wb-bad:CanvasText;"""


def script() -> str:
    """The timeline as one ES module: exports `mount`, `mountAll`, and anywidget's default."""
    return _script(
        "timeline", end="export { mount, mountAll };\nexport default { render: renderWidget };\n"
    )


def boundary_script() -> str:
    """The boundary as one ES module: exports `mountBoundary`, and anywidget's default."""
    return _script(
        "boundary", end="export { mountBoundary };\nexport default { render: renderBoundary };\n"
    )


def report_script() -> str:
    """All of a report's page as one module; its last line draws what is in sight."""
    return _script("report", end="mountReport();\n")


def frame_script() -> str:
    """Both as one module for the page of a notebook's frame; its last line shows them there."""
    return _script("timeline", "boundary", "frame", end="showFrame([mountAll, mountBoundaries]);\n")


def panel_script() -> str:
    """The panel as one ES module: anywidget's default."""
    return _script("panel", end="export default { render: renderPanel };\n")


def panel_page_script() -> str:
    """The panel as one module; its last line mounts every panel of the page."""
    return _script("panel", end="mountPanels();\n")


def panel_frame_script() -> str:
    """The panel as one module for the page of a notebook's frame."""
    return _script("panel", "frame", end="showFrame([mountPanels]);\n")


def opening_script() -> str:
    """The small module that unpacks the page of a frame."""
    return _script("opening", end="openFrame();\n")


def _script(*outlets: str, end: str) -> str:
    return bundle.joined([entry for outlet in outlets for entry in ENTRIES[outlet]], end)


def style() -> str:
    """The style sheet: palette of both themes, tokens, rules of the timeline."""
    return _styled((STATIC / "timeline/timeline.css").read_text("utf-8"))


def boundary_style() -> str:
    """The same, with the rules of the boundary."""
    return style() + _sheets("boundary/boundary.css")


def require_id(element_id: str) -> None:
    """Requires what can stand in an attribute and in a selector as it is.

    Raises:
      ValueError: it has other characters than letters, digits, "-" and "_".
    """
    if not element_id.replace("-", "a").replace("_", "a").isalnum():
        raise ValueError(
            f"element_id is {element_id!r}; expected letters, digits, '-' and '_' only"
        )


def json_script(value: Any, *, drawn: bool = False) -> str:
    """A value as JSON that may stand inside a `<script>` element: nothing in it can end it.

    Bytes of a file name that are no text stand in Python as lone surrogates; UTF-8 has none.

    Args:
      value: the value.
      drawn: whether its texts are drawn, rather than read by a program: then none of them turns
        the words around it.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = _seen(text) if drawn else text
    return _NOT_IN_A_SCRIPT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def deflated_json(value: Any) -> bytes:
    """A value as deflated JSON, as pages and widgets carry what is large."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return zlib.compress(_seen(text).encode("utf-8"), 9)


def _seen(text: str) -> str:
    """JSON whose texts show what `visible` shows of them."""
    return UNSEEN.sub(lambda found: json.dumps(visible(found[0]))[1:-1], text)


def image_html(svg: str, alt: str) -> str:
    """An SVG picture as an `<img>` that holds it, no wider than the page."""
    data = base64.b64encode(visible(svg).encode("utf-8")).decode("ascii")
    return (
        f'<img src="data:image/svg+xml;base64,{data}" alt="{html.escape(alt)}" '
        'style="display:block;max-width:100%;height:auto;border:1px solid #e0e0e0">'
    )


def _read(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple((STATIC / part).read_text("utf-8") for part in parts)


@functools.lru_cache(maxsize=4)
def _styled(sheet: str) -> str:
    dark = _DARK + colors.css("dark")
    dark_rules = (
        "@media (prefers-color-scheme: dark) {"
        f" .wb:not([data-wb-theme], {_THEMED}) {{ {dark} }} }}\n"
        f'.wb[data-wb-theme="dark"], {_DARK_PAGES} .wb:not([data-wb-theme]) {{ {dark} }}\n'
        f"@media print {{ .wb.wb {{ {_PAPER}{colors.css('light')} }} }}\n"
        f".wb.wb-print {{ {_PAPER}{colors.css('light')} }}"
    )
    plain = "".join(f"--wb-f{i}:Canvas;--wb-t{i}:CanvasText;" for i in range(len(colors.FAMILIES)))
    forced = (
        f"@media (forced-colors: active) {{ .wb.wb {{ {_FORCED}{plain} }}\n"
        ".wb canvas { forced-color-adjust: none; } }"
    )
    light = f".wb {{ {colors.css('light')} }}\n"
    return _above(light + sheet.replace("/*DARK*/", dark_rules).replace("/*FORCED*/", forced))


def _above(sheet: str, by: int = 1) -> str:
    """The same rules, each above any that a notebook's page has for classes and elements.

    Outputs of a notebook have a sheet each: rules of one view stand above what all views share,
    by one more, so that the sheet of a later output changes nothing.
    """
    return _ROOT.sub(f":is(.wb,{'#wb' * by})", sheet)


def page_style() -> str:
    """Style of every view and of a report."""
    return views_style() + _sheets("report/report.css")


def view_page_style(*views: str) -> str:
    """Style of a page that holds some views alone.

    Args:
      *views: of VIEWS.
    """
    return page_style() + _view_sheets(views)


def panel_style() -> str:
    """Style of the panel and of every view that it shows."""
    return views_style() + _sheets("panel/panel.css")


def view_style(*views: str) -> str:
    """Style of some views alone: palette, tokens and tables, and the rules of each.

    Args:
      *views: of VIEWS.
    """
    return style() + _sheets("shared/views.css") + _view_sheets(views)


def views_style() -> str:
    """Style of all views, for a page or a panel that shows several; nothing in it is of a page.

    Every rule is about what stands in an element of the class "wb".
    """
    return boundary_style() + _sheets("shared/views.css") + _view_sheets(VIEWS)


def _sheets(*sheets: str) -> str:
    return _above("".join(_read(sheets)))


def _view_sheets(views: Sequence[str]) -> str:
    return _above("".join(_read([f"{view}/{view}.css" for view in views])), by=2)


@functools.lru_cache(maxsize=1)
def templates() -> jinja2.Environment:
    """The HTML templates."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(STATIC),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )

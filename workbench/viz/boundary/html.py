"""Boundary views as HTML: for a report's page, and still for front ends without scripts."""

from __future__ import annotations

import base64
import functools
import html
import re
import zlib
from typing import Any

import jinja2
import markupsafe

from workbench.viz.boundary.drawing.picture import boundary_picture
from workbench.viz.boundary.view import BoundaryView
from workbench.viz.style import assets

_STILL_ROWS, _STILL_CAUSES = 20, 8
_PAPER_WIDTH = 960
_PICTURED = "What runs ahead and what stays"
_BREAK = re.compile(r"(?<=[/_…])(?=.)|(?<=[a-z])(?=[A-Z])")


def boundary_html(view: BoundaryView, element_id: str) -> str:
    """A boundary that the page's script brings to life; until then, its still picture.

    Args:
      view: what to draw.
      element_id: unique in the page; letters, digits, "-" and "_".

    Returns:
      One element and one inert script element with the packed view. The page needs
      `assets.boundary_style()` once and `assets.report_script()` once, as a module, at its end.
    """
    assets.require_id(element_id)
    data = base64.b64encode(packed(view)).decode("ascii")
    return (
        f'<div id="{element_id}" class="wb wb-boundary" data-wb-boundary="{element_id}">'
        f"{_still(view)}</div>\n"
        f'<script type="text/plain" id="{element_id}-data">{data}</script>\n'
    )


def boundary_static_html(view: BoundaryView) -> str:
    """A still picture and why nodes stay, as a table; no script, no style sheet needed.

    The picture is an `<img>`: viewers of notebooks that take style out of HTML leave it.
    """
    sentence = "".join(
        f"<strong>{html.escape(text)}</strong>" if strong else html.escape(text)
        for text, strong in view.sentence
    )
    notice = f"<p>{html.escape(view.notice)}</p>" if view.notice else ""
    picture = assets.image_html(boundary_picture(view), _PICTURED)
    return f'<div class="wb-static"><p>{sentence}</p>{notice}{picture}{_reasons(view)}</div>'


def _reasons(view: BoundaryView) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(reason.code)}</td><td>{html.escape(reason.word)}</td>"
        f"<td>{html.escape(reason.nodes)}</td></tr>"
        for reason in view.reasons
        if reason.nodes
    )
    heads = "".join(f'<th scope="col">{title}</th>' for title in ("Code", "Reason", "Nodes"))
    return (
        f"<table><caption>Why nodes stay in the step</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        if rows
        else ""
    )


def packed(view: BoundaryView) -> bytes:
    """The view's JSON, deflated, as page and widget carry it."""
    return assets.deflated_json(view.to_json())


def _still(view: BoundaryView) -> str:
    return str(_template().module.still(view))


@functools.lru_cache(maxsize=1)
def _template() -> Any:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(assets.STATIC),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(
        picture=_picture,
        first_refused=_first_refused,
        timed=_timed,
        breaks=_breaks,
        rows=_STILL_ROWS,
        causes=_STILL_CAUSES,
    )
    return environment.get_template("boundary/boundary.html.j2")


def _breaks(text: str) -> markupsafe.Markup:
    """A name that may break after its scopes and words, not inside them."""
    escaped = str(markupsafe.escape(text))
    return markupsafe.Markup(_BREAK.sub("<wbr>", escaped))


def _picture(view: BoundaryView) -> markupsafe.Markup:
    """The picture, which escapes every name itself: whole, to be scrolled, and for paper in parts
    below each other that are as wide as a page can show."""
    svg = boundary_picture(view)
    whole = re.match(r'<svg [^>]*width="(\d+)" height="(\d+)"[^>]*>', svg)
    assert whole is not None
    width, height = int(whole[1]), int(whole[2])
    name = f"wbb-{zlib.crc32(svg.encode('utf-8', 'surrogatepass')):08x}"
    count = -(-width // _PAPER_WIDTH)
    part = -(-width // count)
    parts = "".join(
        f'<svg viewBox="{k * part} 0 {part} {height}" width="{part}" height="{height}" '
        f'font-family="sans-serif" font-size="12"><use href="#{name}"/></svg>'
        for k in range(count)
    )
    shapes = svg[whole.end() :].removesuffix("</svg>")
    return markupsafe.Markup(
        f'<div class="wbb-scroll wbb-whole" tabindex="0" role="group" aria-label="{_PICTURED}">'
        f'{whole[0]}<g id="{name}">{shapes}</g></svg></div>'
        f'<div class="wbb-parts">{parts}</div>'
    )


def _timed(view: BoundaryView) -> bool:
    return view.flow is not None and view.flow.timed


def _first_refused(view: BoundaryView) -> int:
    """The box whose answer is shown unasked, -1 without one."""
    flow = view.flow
    stays = [box.box for box in flow.boxes if box.state == "stay"] if flow else []
    return next((box for box in stays if view.boxes[box].rows), -1)

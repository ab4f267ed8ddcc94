"""A timeline written by hand, read by the browser's code, and its still picture."""

from __future__ import annotations

import base64
import html
import re
import zlib
from xml.etree import ElementTree

from tests.builders.javascript import evaluate
from tests.builders.traces import START_NS, make_trace
from workbench.viz.timeline.view import TimelineView

MS = 1_000_000

DECODE = """(() => {
  const bytes = fromBase64(value.blob);
  const model = decode(value.header, bytes);
  return %s;
})()"""


def in_browser(view: TimelineView, expression: str, **more: object) -> object:
    blob = base64.b64encode(view.columns.buffer()).decode()
    return evaluate(DECODE % expression, {"header": view.to_json_header(), "blob": blob, **more})


# a step of 10 ms that waits 4 ms for its item; two hashes of the stage overlap
TRACE = make_trace(
    [
        (START_NS, 2 * MS, 0, 0, 1, 7),
        (START_NS + 2 * MS, 1 * MS, 0, 1, 1, 7),
        (START_NS + 2 * MS + 500_000, 1 * MS, 0, 1, 1, 7),
        (START_NS + 5 * MS, 3 * MS, 40_000, 2, 2, 3),
        (START_NS + 9 * MS, 1 * MS, 900_000, 3, 2, 3),
    ],
    nodes=(("read", "ReadFile"), ("hash", "StringToHashBucketFast"), ("lookup", "ResourceGather"),
           ("gradients/top/MatMul", "MatMul")),
    runs=[(0, 3, START_NS + 1 * MS, START_NS + 11 * MS), (1, 7, START_NS, START_NS + 4 * MS)],
    items=[("input", 0, START_NS + 3_500_000, START_NS + 5 * MS, START_NS + 1 * MS,
            START_NS + 5 * MS, 1, 7, 3, 0)],
    title="By hand",
    cores=2,
    capacity={"input": 2},
)  # fmt: skip


def frame_of(page: str) -> str:
    """The page that is packed into the one frame of a notebook's output."""
    (source,) = re.findall(r'srcdoc="([^"]*)"', page)
    data = re.search(r'id="packed">([^<]*)<', html.unescape(source))
    assert data is not None
    return zlib.decompress(base64.b64decode(data[1])).decode("utf-8")


def picture_of(still: str) -> ElementTree.Element:
    """The picture in a still."""
    picture = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)"', still)
    assert picture is not None
    return ElementTree.fromstring(base64.b64decode(picture[1]))


def drawn_texts(picture: ElementTree.Element) -> list[str | None]:
    return [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]

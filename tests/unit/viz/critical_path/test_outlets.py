"""A critical path as HTML and text: complete, and names are text."""

from __future__ import annotations

import dataclasses
import html.parser
import re

from tests.builders.critical_paths import three_steps
from workbench import display
from workbench.core.analysis.critical_path import critical_path
from workbench.viz.outlets import html_of, text_of

NBSP = "\u00a0"


class _Words(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def parsed(page: str) -> _Words:
    found = _Words()
    found.feed(re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))
    return found


def test_the_html_needs_no_script_and_nothing_from_elsewhere():
    page = html_of(critical_path(three_steps()))
    found = parsed(page)
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert not re.search(r"url\(|https?:", page)
    words = "".join(found.words)
    for expected in ("A traced step", "Step 1, 100", "top/join", "Slack in step 1", "train.py:7"):
        assert expected in words
    assert 'title="/home/me/train.py:7 lines"' in page


def test_another_step_can_be_shown():
    assert "Step 3, 130" in html_of(critical_path(three_steps()), step=3)


def test_a_name_is_text():
    trace = three_steps()
    nodes = trace.nodes.assign(name=["<b>read</b>", *trace.nodes["name"][1:]])
    path = critical_path(dataclasses.replace(trace, nodes=nodes))
    found = parsed(html_of(path))
    assert "b" not in found.tags and "<b>read</b>" in "".join(found.words)


def test_a_notebook_shows_both_forms():
    path = critical_path(three_steps())
    shown, _ = path._repr_mimebundle_()
    assert shown["text/plain"] == text_of(path) == display.text_of(path)
    assert shown["text/html"] == html_of(path)


def test_the_text_holds_the_answer_the_bars_and_the_tables():
    lines = text_of(critical_path(three_steps())).replace(NBSP, " ").splitlines()
    assert lines[0] == "Critical path of By hand"
    assert lines[1].startswith("A traced step takes 110 ms, the mean of 3: 91.0 ms are ops")
    assert lines[3] == "Step 1, 100 ms"
    assert lines[4].split() == ["call", "of", "the", "step", "··", "4.0", "ms"]
    assert lines[5].split() == ["read", "█" * 10, "21.0", "ms"]
    assert "Lookup, a  55.0 ms" in lines
    assert lines[-1].startswith("top/join") or lines[-1].startswith("a/keep")

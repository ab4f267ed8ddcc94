"""What the tests of pages rest on: nothing elsewhere is reached, and every attempt is seen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ui.watched import Watched

ADDRESSES = ("http://example.org/a.png", "http://192.0.2.1/b", "ws://example.org/c")
ASK_JS = """async ([image, data, socket]) => {
  const failed = (one) => new Promise((done) => { one.onerror = () => done("failed"); });
  const picture = document.body.appendChild(new Image());
  const seen = [failed(picture), fetch(data).catch(() => "failed")];
  picture.src = image;
  seen.push(failed(new WebSocket(socket)));
  return Promise.all(seen);
}"""


@pytest.mark.timeout(60)
def test_another_machine_is_not_reached_and_each_attempt_is_seen(lab_context: Any) -> None:
    page = lab_context.new_page()
    watched = Watched(page)
    assert page.evaluate(ASK_JS, list(ADDRESSES)) == ["failed"] * 3
    page.close()
    assert sorted(watched.outside("127.0.0.1:8888")) == sorted(ADDRESSES)
    assert watched.outside("example.org", "192.0.2.1") == []
    assert sum("ERR_NAME_NOT_RESOLVED" in text for text in watched.errors) == 3

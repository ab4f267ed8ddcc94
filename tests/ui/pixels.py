"""What is painted: the colors of a screenshot, not what the page's elements say of themselves."""

from __future__ import annotations

import base64
from typing import Any

COUNT_JS = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const found = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const color = ((1 << 24) | (data[i] << 16) | (data[i + 1] << 8) | data[i + 2]).toString(16);
    found.set(`#${color.slice(1)}`, (found.get(`#${color.slice(1)}`) || 0) + 1);
  }
  return Object.fromEntries(found);
}"""


def painted(element: Any) -> dict[str, int]:
    """How many pixels of each color, as "#rrggbb", the element has on the screen."""
    shot = base64.b64encode(element.screenshot()).decode("ascii")
    counter = element.page.context.browser.new_page()
    try:
        colors: dict[str, int] = counter.evaluate(COUNT_JS, shot)
    finally:
        counter.close()
    return colors

// Samples of the families' colours beside words: in legend, card and table.
import { element } from "../../shared/dom.js";
import { familyFill, hatchFill } from "./colors.js";
import { WAIT } from "./decode.js";

export function swatch(theme, family) {
  const canvas = element("canvas", { class: "wb-swatch", "aria-hidden": "true" });
  canvas.dataset.family = family;
  paintSwatch(canvas, theme, family);
  return canvas;
}

export function repaintSwatches(root, theme) {
  for (const canvas of root.querySelectorAll("canvas.wb-swatch")) {
    paintSwatch(canvas, theme, Number(canvas.dataset.family));
  }
}

export function legend(theme, families) {
  const items = families.map(([name, code], f) =>
    element("li", {}, swatch(theme, f), name, element("span", { class: "wb-quiet" }, ` ${code}`)),
  );
  items.push(element("li", {}, swatch(theme, WAIT), "wait"));
  return element("ul", { class: "wb-legend", "aria-label": "Op families" }, ...items);
}

// 12 px wide and tall
function paintSwatch(canvas, theme, family) {
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.height = 12 * ratio;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.fillStyle = family >= WAIT ? hatchFill(g, theme) : familyFill(g, theme, family);
  g.fillRect(0, 0, 12, 12);
  if (family >= WAIT || theme.forced) {
    g.strokeStyle = theme.ink2;
    g.strokeRect(0.5, 0.5, 11, 11);
  }
}

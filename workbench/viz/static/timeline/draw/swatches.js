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

// a button for each family, and one for waits
export function legend(theme, families) {
  const items = [...families.map(([name, code], f) => [f, name, code]), [WAIT, "wait", ""]];
  const shown = items.map(([family, name, code]) => {
    const words = code ? [name, element("span", { class: "wb-quiet" }, ` ${code}`)] : [name];
    const attributes = { type: "button", "aria-pressed": "false", "data-family": family };
    return element("li", {}, element("button", attributes, swatch(theme, family), ...words));
  });
  return element("ul", { class: "wb-legend", "aria-label": "Op families: a click shows one alone" }, ...shown);
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

// Words and marks of a box: its family, why it stays, the legend.
import { element } from "../shared/dom.js";

export function familyBar(family) {
  return `--wbb-family: var(--wb-f${family})`;
}

// a name that may break after its scopes and words, not inside them
export function breakable(text) {
  return text.split(/(?<=[/_…])|(?<=[a-z])(?=[A-Z])/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));
}

// code and words of a reason
export function reasonMark(view, place) {
  const { code, word, refused } = view.reasons[place];
  return element(
    "span",
    { class: refused ? "wbb-mark" : "wbb-mark wbb-left" },
    element("span", { class: "wbb-code" }, code),
    ` ${word}`,
  );
}

export function familyLegend(view) {
  const shown = view.flow ? view.flow.boxes.map((one) => one.box) : [];
  const families = new Set(shown.map((place) => view.boxes[place].family));
  const items = [...families]
    .sort((a, b) => a - b)
    .map((f) =>
      element(
        "li",
        {},
        element("span", { class: "wbb-swatch", style: familyBar(f), "aria-hidden": "true" }),
        view.families[f][0],
        element("span", { class: "wb-quiet" }, ` ${view.families[f][1]}`),
      ),
    );
  return element("ul", { class: "wb-legend", "aria-label": "Op families" }, ...items);
}

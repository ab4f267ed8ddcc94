// The tables of a boundary: what travels, what the plan does, what was predicted.
import { element } from "../shared/dom.js";
import { breakable } from "./box.js";

// A part that is closed at first.
export function foldElement(title, ...children) {
  const summary = element("summary", { class: "wbb-title" }, title);
  return element("details", { class: "wbb-block wbb-fold" }, summary, ...children);
}

export function headRow(heads) {
  const cells = heads.map(([words, right]) =>
    element("th", { scope: "col", class: right ? "wb-right" : null }, words),
  );
  return element("thead", {}, element("tr", {}, ...cells));
}

// what holds nothing to focus is a tab stop itself, with a label, so that keys can scroll it
export function scrolled(table, label = null) {
  const stop = label ? { tabindex: "0", role: "group", "aria-label": label } : {};
  return element("div", { class: "wbb-scroll", ...stop }, table);
}

export function cutElement({ caption, rows, more }) {
  const body = rows.map(([values, tensors, types, readers, why]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", class: "wb-mono" }, ...breakable(values)),
      element("td", { class: "wb-right" }, tensors),
      element("td", { class: "wb-mono" }, types),
      element(
        "td",
        {},
        readers ? element("span", { class: "wb-mono" }, ...breakable(readers)) : "",
        why ? element("div", {}, why) : "",
      ),
    ),
  );
  const made = element(
    "table",
    { class: "wb-table wbb-cuts" },
    element("caption", {}, caption),
    headRow([["Values"], ["Tensors", true], ["Type"], ["Read by"]]),
    element("tbody", {}, ...body),
  );
  const parts = [scrolled(made, caption)];
  if (more) parts.push(element("p", { class: "wb-quiet" }, `and ${more} more kinds`));
  return element("div", {}, ...parts);
}

function candidateBar({ at, bound_at: bound }) {
  const place = (share) => `left: ${(100 * share).toFixed(2)}%`;
  return element(
    "td",
    { class: "wbb-plot", "aria-hidden": "true" },
    element(
      "div",
      { class: "wbb-axis" },
      element("div", { class: "wbb-bar", style: `width: ${(100 * at).toFixed(2)}%` }),
      element("div", { class: "wbb-bound", style: place(bound) }),
      element("div", { class: "wbb-diamond", style: place(at) }),
    ),
  );
}

export function candidatesElement(candidates) {
  const rows = candidates.map((each) =>
    element(
      "tr",
      { class: each.chosen ? "wbb-chosen" : null },
      element("th", { scope: "row" }, each.label, each.chosen ? " (chosen)" : ""),
      candidateBar(each),
      element("td", { class: "wb-right" }, each.step),
      element("td", { class: "wb-right" }, each.bound),
      element("td", { class: "wb-right" }, each.ratio),
      element("td", {}, each.limited_by),
    ),
  );
  const heads = [["Candidate"], [""], ["Step", true], ["At best", true], ["Ratio", true], ["Limited by"]];
  return scrolled(
    element(
      "table",
      { class: "wb-table wbb-candidates" },
      element("caption", {}, "◇ predicted from a trace, not measured; | what the slowest part alone takes"),
      headRow(heads),
      element("tbody", {}, ...rows),
    ),
    "Predicted time of a step",
  );
}

export function editsElement(edits) {
  const list = element("dl", { class: "wbb-edits" });
  for (const [name, reason] of edits) {
    list.append(element("dt", {}, name), element("dd", {}, reason));
  }
  return list;
}

// The Table: what is in view, by op type.
import { offerCsv } from "../../shared/csv.js";
import { element } from "../../shared/dom.js";
import { NBSP, duration, fixed, integer } from "../../shared/format.js";
import { WAIT } from "../draw/decode.js";
import { swatch } from "../draw/swatches.js";
import { inView } from "./sums.js";

// the window as the ruler would write its ends: decimals follow its width
export function rangeWords([from, to], total) {
  const decimals = Math.max(0, Math.min(6, Math.ceil(Math.log10(1e8 / (to - from)))));
  const low = fixed(Math.round(Math.max(0, from)), 1e6, decimals);
  return `${low}–${fixed(Math.round(Math.min(total, to)), 1e6, decimals)}${NBSP}ms`;
}

export function fillTable(holder, s) {
  const rows = inView(s.model, s.window, s.kept);
  const head = [["Op"], ["Family"], ["Spans", 1], ["Time in view", 1], ["Longest", 1]];
  const right = (number) => (number ? "wb-right" : null);
  const cells = ({ op, family, spans, total, longest }) => [
    element("td", { class: "wb-mono" }, op),
    element("td", {}, swatch(s.theme, family), familyWords(s.model, family)),
    element("td", { class: "wb-right" }, integer(spans)),
    element("td", { class: "wb-right" }, duration(total)),
    element("td", { class: "wb-right" }, duration(longest)),
  ];
  const words = `In view, ${rangeWords(s.window, s.model.duration)}, largest first`;
  holder.replaceChildren(
    element(
      "table",
      { class: "wb-table" },
      element("caption", {}, rows.length ? words : "No span is in view"),
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          ...head.map(([title, number]) =>
            element("th", { scope: "col", class: right(number) }, title),
          ),
        ),
      ),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row)))),
    ),
  );
  offerCsv(holder, "in-view");
}

export function familyWords(model, family) {
  return family === WAIT ? "wait" : model.header.families[family][0];
}

// The sums of a marked stretch as a table: of one timeline, or of two and their difference.
import { offerCsv } from "../../shared/csv.js";
import { element } from "../../shared/dom.js";
import { NBSP, duration, fixed, integer } from "../../shared/format.js";
import { swatch } from "../draw/swatches.js";
import { sumsOf } from "./sums.js";
import { familyWords, rangeWords } from "./table.js";

const MOST_OPS = 5; // of a family; the others are one row

function differenceWords(ns) {
  const words = duration(ns);
  return Math.round(ns) > 0 ? `+${words}` : words;
}

function stepWords(count) {
  const near = Math.abs(count - Math.round(count)) < 0.005;
  const words = near ? integer(Math.round(count)) : fixed(Math.round(count * 100), 100, 2);
  return `${words}${NBSP}${words === "1" ? "step" : "steps"}`;
}

// rows of a family: itself, its largest op types, and the rest of them as one
function markedRows(part, words) {
  const rows = [{ ...part, words, strong: true }];
  const shown = part.ops.length > MOST_OPS + 1 ? part.ops.slice(0, MOST_OPS) : part.ops;
  for (const op of shown) rows.push({ ...op, words: op.op });
  const rest = part.ops.slice(shown.length);
  if (!rest.length) return rows;
  const added = (pick) => part[pick].map((_, side) => rest.reduce((sum, op) => sum + op[pick][side], 0));
  rows.push({ words: `${rest.length} other op types`, times: added("times"), spans: added("spans") });
  return rows;
}

function lineOf(theme, row, sides) {
  const [first, last] = row.times;
  const cells = sides === 1
    ? [integer(row.spans[0]), duration(first)]
    : [duration(first), duration(last), differenceWords(last - first)];
  const head = element("th", { scope: "row", class: row.strong ? null : "wb-mono wb-under" });
  if (row.strong) head.append(swatch(theme, row.family));
  head.append(row.words);
  const numbers = cells.map((words) => element("td", { class: "wb-right" }, words));
  return element("tr", { class: row.strong ? "wb-strong" : null }, head, ...numbers);
}

// What the sums are of, in a sentence; of two timelines for each.
function captionOf(sides, { steps, aStep }) {
  const [{ model, range }] = sides;
  const long = sides.map((side) => duration(side.range[1] - side.range[0]));
  const counted = sides.map(({ label }, side) => `${stepWords(steps[side])}${label && ` of ${label}`}`);
  const times = aStep ? "Times are those of a step." : "Times are those of the stretch, which is less than a step.";
  if (sides.length === 1) return `Marked: ${long[0]}, ${rangeWords(range, model.duration)}, ${counted[0]}. ${times}`;
  const alike = long[0] === long[1] ? `${long[0]}: ` : "";
  const parts = counted.map((words, side) => (alike ? words : `${words}, ${long[side]}`));
  return `Marked in both, ${alike}${parts.join(" and ")}. ${times}`;
}

// Fills the region of marked sums of a view; hides it where nothing is marked.
//   sides: [{ label, model, range }], one or two.
export function fillMarked(view, sides) {
  const { marked } = view.parts;
  const { theme, kept } = view.state;
  marked.hidden = sides.some(({ range }) => !range);
  if (marked.hidden) return;
  const sums = sumsOf(sides, kept);
  const heads = sides.length === 1 ? ["Spans", "Time"] : [...sides.map(({ label }) => label), "Difference"];
  const rows = sums.parts.flatMap((part) => markedRows(part, familyWords(sides[0].model, part.family)));
  const table = element(
    "table",
    { class: "wb-table" },
    element("caption", {}, captionOf(sides, sums)),
    element("thead", {}, element("tr", {},
      element("th", { scope: "col" }, "Family and op type"),
      ...heads.map((words) => element("th", { scope: "col", class: "wb-right" }, words)))),
    element("tbody", {}, ...rows.map((row) => lineOf(theme, row, sides.length))),
  );
  marked.querySelector(".wb-sums").replaceChildren(table);
  offerCsv(marked, "marked");
}

// The card beside the pointer. It repeats what a click writes below the timeline.
import { element } from "../../shared/dom.js";
import { duration, integer } from "../../shared/format.js";
import { factsOf, spanName } from "../draw/describe.js";
import { swatch } from "../draw/swatches.js";

const CARD_WIDTH = 248;
const OFFSET = 14;

export function fillCard(card, s, found) {
  const { model, theme } = s;
  const lines = [];
  const facts = [];
  if (found.kind === "span") {
    lines.push(element("div", { class: "wb-mono wb-strong" }, spanName(model, found.i)));
    facts.push(...factsOf(model, found.i));
    if (found.others) facts.push(["Beside it", `${integer(found.others)} more in this pixel`, -1]);
  } else if (found.kind === "buffer") {
    lines.push(element("div", { class: "wb-strong" }, found.row.lane.title));
    const { capacity } = found.row.lane;
    lines.push(element("div", {}, `${integer(found.held)} of ${integer(capacity)} items`));
  } else {
    const name = found.name[0].toUpperCase() + found.name.slice(1);
    lines.push(element("div", { class: "wb-strong" }, name));
    const words = `${found.row.lane.title} has nothing to run for ${duration(found.dur)}`;
    lines.push(element("div", {}, words));
  }
  if (facts.length) lines.push(factList(theme, facts));
  card.replaceChildren(...lines);
}

function factList(theme, facts) {
  const list = element("dl", { class: "wb-facts" });
  for (const [label, value, family] of facts) {
    const detail = element("dd", {});
    if (family >= 0) detail.append(swatch(theme, family));
    detail.append(value);
    list.append(element("dt", {}, label), detail);
  }
  return list;
}

export function placeCard(card, x, y, width, height) {
  const right = x + OFFSET + CARD_WIDTH <= width - 4;
  card.style.left = `${Math.max(4, right ? x + OFFSET : x - OFFSET - CARD_WIDTH)}px`;
  const low = Math.max(4, height - card.offsetHeight - 6);
  card.style.top = `${Math.min(y + OFFSET, low)}px`;
}

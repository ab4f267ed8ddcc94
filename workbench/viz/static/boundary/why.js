// The answer to "why not staged?": it stands under the picture or under the row that was picked, and
// is read aloud.
import { element } from "../shared/dom.js";
import { breakable, reasonMark } from "./box.js";

const WHY_NOT = "Why not staged?";

function pathElement(path) {
  const made = element("p", { class: "wb-mono wbb-path" });
  path.forEach((name, k) => made.append(k ? " ← " : "", ...breakable(name)));
  return made;
}

function namesElement(row) {
  const more = row.names.length < Number(row.nodes.replace(/\D/g, ""));
  return element(
    "details",
    {},
    element("summary", {}, `All ${row.nodes} alike`),
    element("p", { class: "wb-mono" }, row.names.join(", ") + (more ? ", …" : "")),
  );
}

// one refusal in full: reason, path to the blocker, smallest change
function refusalElements(view, row) {
  const count = row.names.length > 1;
  const parts = [
    element("p", {}, reasonMark(view, row.reason)),
    element("p", {}, row.detail),
  ];
  if (row.path.length > 1) parts.push(pathElement(row.path));
  parts.push(
    element("p", {}, element("span", { class: "wb-quiet" }, "Smallest change: "), row.change),
  );
  if (count) parts.push(namesElement(row));
  return parts;
}

function otherRows(view, box, open) {
  if (box.rows.length < 2) return [];
  const list = element("ul", { class: "wbb-others" });
  for (const place of box.rows) {
    const words = element("span", { class: "wb-mono" }, ...breakable(view.rows[place].title));
    const pick = element(
      "button",
      { type: "button", class: "wbb-link", "data-row": place, "aria-expanded": String(place === open) },
      words,
    );
    const item = element("li", {}, pick, ` ${view.rows[place].nodes}`);
    if (place === open) item.append(...refusalElements(view, view.rows[place]));
    list.append(item);
  }
  if (box.more_rows) list.append(element("li", { class: "wb-quiet" }, `and ${box.more_rows} more`));
  return [element("p", { class: "wb-quiet" }, "In this box:"), list];
}

// what a box reads and feeds: the words that a pointer finds at its links
function linkLines(view, place) {
  const at = view.flow ? view.flow.boxes.findIndex((one) => one.box === place) : -1;
  const name = (other) => view.boxes[view.flow.boxes[other].box].title;
  const line = (words, other, link) =>
    element("li", {}, `${words} `, element("span", { class: "wb-mono" }, ...breakable(name(other))), ` ${link.words}`);
  const lines = at < 0 ? [] : view.flow.links.flatMap((link) => {
    if (link.target === at) return [line("reads", link.source, link)];
    return link.source === at ? [line("feeds", link.target, link)] : [];
  });
  return lines.length ? [element("ul", { class: "wbb-others" }, ...lines)] : [];
}

// what a box opens into, each part with its own tick where it may move
function insideElements(state, place) {
  const { view, ahead } = state;
  const { boxes } = view.boxes[place];
  if (!boxes.length) return [];
  const leavesIn = (one) => {
    const { leaf, boxes: inner } = view.boxes[one];
    return leaf >= 0 ? [leaf] : inner.flatMap(leavesIn);
  };
  const items = boxes.map((one) => {
    const box = view.boxes[one];
    const leaves = leavesIn(one);
    const item = element("li", {});
    if (leaves.length) {
      const on = leaves.filter((leaf) => ahead.has(leaf)).length;
      const tick = element("input", { type: "checkbox", "data-leaves": leaves.join(","), "aria-label": `${box.title} runs ahead` });
      Object.assign(tick, { checked: on === leaves.length, indeterminate: on > 0 && on < leaves.length });
      item.append(element("label", { class: "wbb-inside-tick" }, tick));
    }
    const facts = [box.about, box.time].filter(Boolean).join(", ");
    const here = state.node && box.nodes.includes(state.node) ? " wbb-here" : "";
    item.append(element("span", { class: `wb-mono${here}` }, ...breakable(box.label)), element("span", { class: "wb-quiet" }, ` ${facts}`));
    if (box.boxes.length) {
      const more = element("details", { "data-inside": one }, element("summary", {}, item.textContent));
      if (state.opened.has(one)) more.open = true;
      more.append(...insideElements(state, one));
      item.lastChild.previousSibling.remove();
      item.lastChild.replaceWith(more);
    }
    return item;
  });
  return [element("ul", { class: "wbb-inside" }, ...items)];
}

function boxElements(state, place, open) {
  const { view } = state;
  const box = view.boxes[place];
  const family = view.families[box.family][0];
  const facts = [box.about, box.time && `${box.time} of op time a step`, family].filter(Boolean).join(", ");
  const parts = [
    element("p", { class: "wb-mono wbb-picked" }, ...breakable(box.title)),
    element("p", {}, `${box.explanation} `, element("span", { class: "wb-quiet" }, facts)),
  ];
  if (box.rows.length === 1) parts.push(...refusalElements(view, view.rows[box.rows[0]]));
  else if (box.marks.length) {
    const marks = box.marks.map((mark) => reasonMark(view, mark));
    parts.push(element("p", { class: "wbb-marks" }, ...marks));
    if (box.held_by) parts.push(element("p", { class: "wb-mono" }, ...breakable(box.held_by)));
  }
  const inside = insideElements(state, place);
  if (inside.length) parts.push(element("p", { class: "wb-quiet" }, "Inside:"), ...inside);
  return [...parts, ...linkLines(view, place), ...otherRows(view, box, open)];
}

function rowElements(view, place) {
  const row = view.rows[place];
  const stays = row.near ? "Stays on the compute side, next to the boundary." : "Stays on the compute side.";
  return [element("p", {}, stays), ...refusalElements(view, row)];
}

function rowWords({ title, detail, change }) {
  return `${title}: ${detail} Smallest change: ${change}`;
}

// the answer as elements, and as the words that a screen reader says
export function answerOf(state) {
  const { view, box, row, inTable } = state;
  if (inTable) {
    const words = rowWords(view.rows[row]);
    return { heading: WHY_NOT, parts: rowElements(view, row), words };
  }
  const { rows, title, explanation, marks, held_by: by } = view.boxes[box];
  const one = row >= 0 ? row : rows.length === 1 ? rows[0] : -1;
  const why = marks.map((mark) => view.reasons[mark].word).join(", ");
  const words = one >= 0 ? rowWords(view.rows[one]) : [`${title}: ${explanation}`, why, by].filter(Boolean).join(" ");
  const heading = rows.length ? WHY_NOT : "What happens to it?";
  return { heading, parts: boxElements(state, box, row), words };
}

// Puts the answer under the picture, or under its row. Returns its element, or null without one.
export function placeAnswer(parts, state) {
  if (parts.rows) for (const old of parts.rows.querySelectorAll(".wbb-why")) old.remove();
  parts.answer.replaceChildren();
  if (state.inTable) parts.rows.closest("details").open = true;
  const picked = state.inTable ? parts.rows.querySelector(`[data-row="${state.row}"]`) : state.box >= 0;
  if (!picked) return null;
  const { heading, parts: paragraphs } = answerOf(state);
  const panel = element(
    "div",
    { class: "wbb-answer", role: "group", "aria-label": heading },
    element("div", { class: "wbb-title" }, heading),
    ...paragraphs,
  );
  if (!state.inTable) {
    const answer = element("div", { class: "wbb-why" }, panel);
    parts.answer.append(answer);
    return answer;
  }
  const answer = element("tr", { class: "wbb-why" }, element("td", { colspan: "5" }, panel));
  picked.closest("tr").after(answer);
  return answer;
}

// The answer to "why not staged?": it stands at the click, below the box or the row that was picked,
// and is read aloud.
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
export function refusalElements(view, row) {
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

function boxElements(view, place, open) {
  const box = view.boxes[place];
  const family = view.families[box.family][0];
  const parts = [
    element("p", {}, `${box.explanation} `, element("span", { class: "wb-quiet" }, `${box.about}, ${family}`)),
  ];
  if (box.rows.length === 1) return [...parts, ...refusalElements(view, view.rows[box.rows[0]])];
  if (box.marks.length) {
    const marks = box.marks.map((mark) => reasonMark(view, mark));
    parts.push(element("p", { class: "wbb-marks" }, ...marks));
    if (box.held_by) parts.push(element("p", { class: "wb-mono" }, ...breakable(box.held_by)));
  }
  return [...parts, ...otherRows(view, box, open)];
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
  return { heading, parts: boxElements(view, box, row), words };
}

// Puts the answer where the click was. Returns its element, or null where nothing is picked.
export function placeAnswer(parts, state) {
  for (const holder of [parts.sides, parts.rows]) {
    if (holder) for (const old of holder.querySelectorAll(".wbb-why")) old.remove();
  }
  const picked = state.inTable
    ? parts.rows.querySelector(`[data-row="${state.row}"]`)
    : parts.sides.querySelector(`[data-box="${state.box}"]`);
  if (!picked) return null;
  const { heading, parts: paragraphs } = answerOf(state);
  const panel = element(
    "div",
    { class: "wbb-answer", role: "group", "aria-label": heading },
    element("div", { class: "wbb-title" }, heading),
    ...paragraphs,
  );
  const answer = state.inTable
    ? element("tr", { class: "wbb-why" }, element("td", { colspan: "5" }, panel))
    : element("li", { class: "wbb-why" }, panel);
  picked.closest(state.inTable ? "tr" : "li").after(answer);
  return answer;
}

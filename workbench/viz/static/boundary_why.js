// The panel beside the picture: what is known of the selected box or refusal.

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

// one refusal in full: reason, way to the blocker, smallest change
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

function otherRows(view, box) {
  if (box.rows.length < 2) return [];
  const list = element("ul", { class: "wbb-others" });
  for (const place of box.rows) {
    const words = element("span", { class: "wb-mono" }, ...breakable(view.rows[place].title));
    const pick = element(
      "button",
      { type: "button", class: "wbb-link", "data-row": place },
      words,
    );
    list.append(element("li", {}, pick, ` ${view.rows[place].nodes}`));
  }
  if (box.more_rows) list.append(element("li", { class: "wb-quiet" }, `and ${box.more_rows} more`));
  return [element("p", { class: "wb-quiet" }, "In this box:"), list];
}

function boxElements(view, place) {
  const box = view.boxes[place];
  const family = view.families[box.family][0];
  const parts = [
    element("p", { class: "wb-mono wb-strong" }, ...breakable(box.title)),
    element("p", {}, `${box.told} `, element("span", { class: "wb-quiet" }, `${box.about}, ${family}`)),
  ];
  if (box.rows.length === 1) parts.push(...refusalElements(view, view.rows[box.rows[0]]));
  else {
    if (box.marks.length) {
      const marks = box.marks.map((mark) => reasonMark(view, mark));
      parts.push(element("p", { class: "wbb-marks" }, ...marks));
    }
    parts.push(...otherRows(view, box));
  }
  return parts;
}

function rowElements(view, place) {
  const row = view.rows[place];
  const told = row.near ? "Stays on the compute side, next to the boundary." : "Stays on the compute side.";
  return [
    element("p", { class: "wb-mono wb-strong" }, ...breakable(row.title)),
    element("p", {}, `${told} `, element("span", { class: "wb-quiet" }, `${row.nodes} × ${row.op}`)),
    ...refusalElements(view, row),
  ];
}

export function fillWhy(holder, state) {
  const { view, box, row } = state;
  let heading = "Why not staged?";
  let parts = [element("p", { class: "wb-quiet" }, "Pick a box, or a row of the table below.")];
  if (row >= 0) parts = rowElements(view, row);
  else if (box >= 0) {
    parts = boxElements(view, box);
    if (!view.boxes[box].rows.length) heading = "What happens to it?";
  }
  holder.replaceChildren(
    element("div", { class: "wbb-title" }, heading),
    element("div", { class: "wbb-told" }, ...parts),
  );
}

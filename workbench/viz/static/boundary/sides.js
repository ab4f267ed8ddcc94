// The picture: areas side by side, each showing one level of its boxes, the buffer between them.

// where a region is: the boxes opened one inside the other
function levelOf(state, area, region) {
  const key = `${area}:${region}`;
  if (!state.levels.has(key)) state.levels.set(key, []);
  return state.levels.get(key);
}

function boxesOf(state, area, region) {
  const level = levelOf(state, area, region);
  if (level.length) return state.view.boxes[level[level.length - 1]].boxes;
  return state.view.areas[area].regions[region].boxes;
}

function boxItem(view, place, near) {
  const { travels } = view.boxes[place];
  const item = element("li", { class: travels ? "wbb-item wbb-out" : "wbb-item" });
  item.append(boxElement(view, place, near));
  if (travels) {
    const pill = element("span", { class: "wbb-pill" }, travels);
    item.append(element("span", { class: "wbb-wire" }, pill));
  }
  return item;
}

function backButton(view, level) {
  const opened = view.boxes[level[level.length - 1]];
  return element(
    "button",
    { type: "button", class: "wb-btn wbb-back", "aria-label": `Close ${opened.title}` },
    element("span", { "aria-hidden": "true" }, "‹ "),
    opened.title,
  );
}

function boxList(view, places, near, words) {
  return element(
    "ul",
    { class: "wbb-list", "aria-label": words },
    ...places.map((place) => boxItem(view, place, near)),
  );
}

// The boxes of one region along the data. Of a staged side those whose values travel stand at the
// boundary; the input, which the others read as well, leads them in a row of its own.
export function fillRegion(holder, state, area, region) {
  const { view } = state;
  const { kind, title, regions } = view.areas[area];
  const { title: heading, empty } = regions[region];
  const places = boxesOf(state, area, region);
  const level = levelOf(state, area, region);
  const near = kind === "compute" && region === 0;
  const parts = [];
  if (heading) parts.push(element("div", { class: "wbb-heading" }, heading));
  if (level.length) parts.push(backButton(view, level));
  if (!places.length) parts.push(element("p", { class: "wb-quiet" }, empty));
  const { lead, inner, out } = columnsOfBoxes(view, places);
  const lists = [];
  if (lead.length) lists.push(boxList(view, lead, near, `${title}: what travels and is read here`));
  if (inner.length) lists.push(boxList(view, inner, near, heading || title));
  if (out.length) lists.push(boxList(view, out, near, `${title}: what travels`));
  if (lead.length) lists[0].classList.add("wbb-lead");
  parts.push(element("div", { class: "wbb-lists" }, ...lists));
  holder.replaceChildren(...parts);
  markSelected(holder, state);
}

export function columnsOfBoxes(view, places) {
  const leads = (place) => view.boxes[place].travels && view.boxes[place].feeds;
  const after = places.findIndex((place) => !leads(place));
  const rest = after < 0 ? [] : places.slice(after);
  return {
    lead: places.slice(0, places.length - rest.length),
    inner: rest.filter((place) => !view.boxes[place].travels),
    out: rest.filter((place) => view.boxes[place].travels),
  };
}

export function markSelected(holder, state) {
  for (const pick of holder.querySelectorAll(".wbb-pick")) {
    const on = state.box === Number(pick.dataset.box);
    pick.setAttribute("aria-pressed", String(on));
    pick.parentElement.classList.toggle("wbb-on", on);
  }
  rove(holder, ".wbb-pick");
}

function areaElement(state, place) {
  const area = state.view.areas[place];
  const kind = area.kind === "compute" ? "wbb-compute" : `wbb-ahead wbb-${area.kind}`;
  const made = element("section", { class: `wbb-area ${kind}`, "aria-label": area.title });
  made.append(
    element(
      "div",
      { class: "wbb-head" },
      element("div", { class: "wb-strong" }, ...breakable(area.title)),
      element("div", { class: "wb-quiet" }, area.about),
    ),
  );
  if (area.tensors) made.append(element("span", { class: "wbb-tag" }, tagWords(area)));
  const body = element("div", { class: "wbb-body" });
  area.regions.forEach((_, region) => {
    const holder = element("div", { class: "wbb-region", "data-region": `${place}:${region}` });
    fillRegion(holder, state, place, region);
    body.append(holder);
  });
  made.append(body);
  return made;
}

function tagWords(area) {
  return `${area.tensors} ${area.tensors === "1" ? "tensor" : "tensors"}`;
}

export function sidesElement(state) {
  const { areas } = state.view;
  const chains = new Map();
  areas.forEach((area, place) => {
    if (area.kind === "compute") return;
    if (!chains.has(area.chain)) chains.set(area.chain, []);
    chains.get(area.chain).push(areaElement(state, place));
  });
  const made = element("div", {
    class: "wbb-sides",
    role: "group",
    "aria-label": `Sides of the graph. ${BOX_KEY_WORDS}`,
  });
  const rows = [...chains.values()].map((row) => element("div", { class: "wbb-chain" }, ...row));
  if (rows.length) made.append(element("div", { class: "wbb-chains" }, ...rows));
  const compute = areas.findIndex((area) => area.kind === "compute");
  if (compute >= 0) made.append(areaElement(state, compute));
  return made;
}

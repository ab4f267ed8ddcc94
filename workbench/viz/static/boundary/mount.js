// Puts one boundary into an element: builds the parts, wires them, undoes all when the signal aborts.
const BOUNDARY_VERSION = 3;

function titled(title, ...children) {
  return element(
    "section",
    { class: "wbb-block", "aria-label": title },
    element("div", { class: "wbb-title" }, title),
    ...children,
  );
}

// what is explained at first: the first refusal at the boundary
function firstBox(view) {
  const compute = view.areas.find((area) => area.kind === "compute");
  const near = compute ? compute.regions[0].boxes : [];
  const refused = near.find((place) => view.boxes[place].rows.length);
  return refused === undefined ? -1 : refused;
}

function newBoundaryState(view) {
  return {
    view,
    levels: new Map(),
    box: firstBox(view),
    row: -1,
    inTable: false,
    reasons: new Set(),
    cause: -1,
    query: "",
    all: false,
    allCauses: false,
  };
}

function buildBoundary(root, state) {
  const { view } = state;
  const sentence = element("p", { class: "wb-sentence" });
  for (const [text, strong] of view.sentence) {
    sentence.append(strong ? element("strong", {}, text) : text);
  }
  const parts = { sides: sidesElement(state) };
  parts.status = element("p", { class: "wbb-status", role: "status", "aria-live": "polite" });
  root.replaceChildren(sentence);
  if (view.notice) root.append(element("p", { class: "wb-quiet" }, view.notice));
  const hints = keyHints(BOX_KEY_HINTS);
  hints.prepend(element("span", {}, "Click a box to see why it stays"));
  root.append(parts.sides, element("div", { class: "wbb-foot" }, familyLegend(view), hints), parts.status);
  const cuts = view.cuts.map(cutElement);
  if (cuts.length) root.append(titled("What travels", ...cuts));
  const plan = element("div", { class: "wbb-columns" });
  if (view.candidates.length) plan.append(titled("Predicted time of a step", candidatesElement(view.candidates)));
  if (view.edits.length) plan.append(titled("What the plan does", editsElement(view.edits)));
  if (plan.childElementCount) root.append(plan);
  if (view.causes.length) root.append(causesElement(parts, view));
  if (view.rows.length) {
    root.append(refusalsElement(parts, view));
    fillRefusals(parts, state);
  }
  if (parts.causes) fillCauses(parts, state);
  placeAnswer(parts, state);
  return parts;
}

function boundaryController(root, parts, state, onSelect) {
  const show = () => {
    markSelected(parts.sides, state);
    for (const holder of parts.sides.querySelectorAll("[data-region]")) rove(holder, ".wbb-pick");
    if (parts.rows) fillRefusals(parts, state);
    return placeAnswer(parts, state);
  };
  // after a click or a key: in view, and read aloud
  const tell = () => {
    const answer = show();
    parts.status.textContent = answer ? answerOf(state).words : "";
    return () => answer && answer.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const region = (holder) => holder.dataset.region.split(":").map(Number);
  return {
    state,
    // once more: its answer goes
    pickBox(place) {
      const again = state.box === place && !state.inTable && state.row < 0;
      Object.assign(state, { box: again ? -1 : place, row: -1, inTable: false });
      tell()();
      onSelect(again ? "" : state.view.boxes[place].title);
    },
    // a row of the table, or one of those that a box's answer lists
    pickRow(place, inTable) {
      const alone = state.view.boxes.findIndex((one) => one.rows.length === 1 && one.rows[0] === place);
      Object.assign(state, { box: inTable ? alone : state.box, row: place, inTable });
      const reveal = tell();
      // what was clicked has been filled again
      const holder = inTable ? parts.rows : parts.sides;
      focusOn(holder.querySelector(`[data-row="${place}"]`));
      reveal();
      onSelect(state.view.rows[place].names[0]);
    },
    pickCause(place) {
      state.cause = state.cause === place ? -1 : place;
      fillCauses(parts, state);
      fillRefusals(parts, state);
      placeAnswer(parts, state);
    },
    showCauses(all = true) {
      state.allCauses = all;
      if (parts.causes) fillCauses(parts, state);
    },
    open(holder, place) {
      if (!state.view.boxes[place].boxes.length) return;
      const [area, at] = region(holder);
      levelOf(state, area, at).push(place);
      fillRegion(holder, state, area, at);
      placeAnswer(parts, state);
      focusOn(holder.querySelector(".wbb-pick"));
    },
    close(holder) {
      const [area, at] = region(holder);
      const place = levelOf(state, area, at).pop();
      if (place === undefined) return false;
      fillRegion(holder, state, area, at);
      placeAnswer(parts, state);
      focusOn(holder.querySelector(`[data-box="${place}"]`));
      return true;
    },
    filter(button) {
      const place = Number(button.dataset.reason);
      if (!state.reasons.delete(place)) state.reasons.add(place);
      button.setAttribute("aria-pressed", String(state.reasons.has(place)));
      fillRefusals(parts, state);
      placeAnswer(parts, state);
    },
    search(query) {
      state.query = query;
      fillRefusals(parts, state);
      placeAnswer(parts, state);
    },
    showAll(all = true) {
      state.all = all;
      if (parts.rows) fillRefusals(parts, state);
      placeAnswer(parts, state);
    },
    // a node by name, as Python knows it
    select(name) {
      const row = state.view.rows.findIndex((one) => one.names.includes(name));
      const box = state.view.boxes.findIndex((one) => one.title === name);
      Object.assign(state, row >= 0 ? { row, box: -1, inTable: true } : { row, box, inTable: false });
      show();
    },
  };
}

function watchClicks(root, view, signal) {
  const acts = [
    ["[data-open]", (one) => view.open(one.closest("[data-region]"), Number(one.dataset.open))],
    [".wbb-back", (one) => view.close(one.closest("[data-region]"))],
    ["[data-box]", (one) => view.pickBox(Number(one.dataset.box))],
    ["[data-row]", (one) => view.pickRow(Number(one.dataset.row), !one.closest("[data-region]"))],
    ["[data-cause]", (one) => view.pickCause(Number(one.dataset.cause))],
    ["[data-reason]", (one) => view.filter(one)],
  ];
  const listener = (event) => {
    for (const [selector, act] of acts) {
      const one = event.target.closest(selector);
      if (one) {
        act(one);
        return;
      }
    }
  };
  root.addEventListener("click", listener, { signal });
}

function watchBoundaryKeys(root, parts, view, signal) {
  const listener = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target, key } = event;
    if (key === "/" && parts.search && target !== parts.search) parts.search.focus();
    else if (target === parts.search) {
      event.stopPropagation();
      if (key !== "Escape") return;
      parts.search.value = "";
      view.search("");
    } else if (!boundaryKey(parts, view, target, key)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  root.addEventListener("keydown", listener, { signal });
}

// whether a key did something where the focus is
function boundaryKey(parts, view, target, key) {
  const holder = target.closest("[data-region]");
  if (holder) {
    const to = moveTarget(holder, ".wbb-pick", target, key);
    if (to) focusOn(to);
    else if (key === "ArrowRight" && target.dataset.box) view.open(holder, Number(target.dataset.box));
    else if (key === "ArrowLeft" || key === "Escape") return view.close(holder);
    else return false;
    return true;
  }
  const lists = [[parts.rows, "[data-row]"], [parts.causes, "tr:not([hidden]) [data-cause]"]];
  const list = lists.find(([one]) => one && one.contains(target));
  const to = list ? moveTarget(...list, target, key) : null;
  if (to) focusOn(to);
  return Boolean(to);
}

function watchBoundaryPage(root, view, signal) {
  const follow = () => {
    root.dataset.wbTheme = prefersDark() ? "dark" : "light";
  };
  watchTheme(signal, follow);
  const print = (on) => () => {
    root.dataset.wbTheme = on || !prefersDark() ? "light" : "dark";
    root.classList.toggle("wb-print", on);
    view.showAll(on);
    view.showCauses(on);
  };
  addEventListener("beforeprint", print(true), { signal });
  addEventListener("afterprint", print(false), { signal });
}

//   content: what BoundaryView.to_json returned. signal: ends every subscription.
//   onSelect: called with the name of what was picked.
export function mountBoundary(root, content, { signal, onSelect = () => {} }) {
  // first, so that what cannot be read leaves the element as it was
  if (content.version !== BOUNDARY_VERSION) {
    throw new Error(
      `Boundary format ${content.version}; this page reads ${BOUNDARY_VERSION}. Run the cell again.`,
    );
  }
  root.classList.add("wb", "wb-boundary");
  suppressShortcuts(root, signal);
  root.dataset.wbTheme = prefersDark() ? "dark" : "light";
  const state = newBoundaryState(content);
  const parts = buildBoundary(root, state);
  const view = boundaryController(root, parts, state, onSelect);
  watchClicks(root, view, signal);
  watchBoundaryKeys(root, parts, view, signal);
  if (parts.rows) {
    parts.search.addEventListener("input", () => view.search(parts.search.value), { signal });
    parts.all.addEventListener("click", () => view.showAll(), { signal });
  }
  if (parts.causes) parts.allCauses.addEventListener("click", () => view.showCauses(), { signal });
  watchBoundaryPage(root, view, signal);
  root.dataset.wbReady = "true";
  return view;
}

async function unpacked(bytes) {
  return JSON.parse(new TextDecoder().decode(await inflate(bytes)));
}

// Mounts every boundary of a report. The page stays as it is where one cannot be drawn.
export async function mountBoundaries(page = document) {
  const views = [];
  for (const root of page.querySelectorAll("[data-wb-boundary]")) {
    try {
      const packed = page.getElementById(`${root.dataset.wbBoundary}-data`).textContent;
      const { signal } = new AbortController();
      const still = [...root.childNodes];
      views.push(mountBoundary(root, await unpacked(fromBase64(packed)), { signal }));
      keepForPaper(root, still);
    } catch (error) {
      root.append(element("p", { class: "wb-quiet", role: "status" }, error.message));
    }
  }
  return views;
}

// One widget view of a notebook.
export async function renderBoundary({ model, el }) {
  const life = new AbortController();
  const root = document.createElement("div");
  el.append(root);
  let own = false;
  const onSelect = (name) => {
    own = true;
    model.set("selected", name);
    model.save_changes();
    own = false;
  };
  const packed = model.get("packed");
  const bytes = new Uint8Array(packed.buffer || packed, packed.byteOffset || 0, packed.byteLength);
  const view = mountBoundary(root, await unpacked(bytes), { signal: life.signal, onSelect });
  hideStill(model.get("still"), life.signal);
  const onSelected = () => {
    if (!own && model.get("selected")) view.select(model.get("selected"));
  };
  model.on("change:selected", onSelected);
  onSelected();
  return () => {
    life.abort();
    model.off("change:selected", onSelected);
    root.remove();
  };
}

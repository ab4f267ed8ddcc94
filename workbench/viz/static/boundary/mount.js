// Puts one boundary into an element: builds the parts, wires them, undoes all when the signal aborts.
import { element, keyHints, suppressShortcuts } from "../shared/dom.js";
import { focusOn, moveTarget, rove } from "../shared/focus.js";
import { prefersDark, watchTheme } from "../shared/theme.js";
import { familyLegend } from "./box.js";
import { areasElement, flowElement, sidesElement } from "./flow.js";
import { nodeOfPick, placeOfNode } from "./holding.js";
import { BOX_KEY_HINTS } from "./key_words.js";
import { moveController, moveElement, watchLine } from "./move.js";
import { causesElement, fillCauses, fillRefusals, refusalsElement } from "./refusals.js";
import { candidatesElement, cutElement, editsElement, foldElement } from "./tables.js";
import { answerOf, placeAnswer } from "./why.js";

const BOUNDARY_VERSION = 4;

// what is explained at first: the first refusal at the boundary
function firstBox({ flow, boxes }) {
  const refused = flow && flow.boxes.find((one) => one.state === "stay" && boxes[one.box].rows.length);
  return refused ? refused.box : -1;
}

function newBoundaryState(view) {
  return {
    view,
    ahead: new Set(view.flow ? view.flow.cuts[view.flow.shown].leaves : []),
    rejected: new Set(),
    opened: new Set(),
    box: firstBox(view),
    row: -1,
    inTable: false,
    node: "",
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
  const parts = { answer: element("div", { class: "wbb-under" }), sentence };
  parts.status = element("p", { class: "wbb-status", role: "status", "aria-live": "polite" });
  root.replaceChildren(sentence);
  if (view.notice) root.append(element("p", { class: "wb-quiet" }, view.notice));
  if (view.flow) {
    const hints = keyHints(BOX_KEY_HINTS);
    hints.prepend(element("span", {}, "Click a box to see why it stays"));
    const sides = flowElement(view, parts);
    const move = moveElement(parts, view.flow);
    const foot = element("div", { class: "wbb-foot" }, familyLegend(view), hints);
    root.append(parts.facts, sidesElement(view), sides, parts.said, parts.note, foot, parts.answer, move, parts.status);
  } else root.append(areasElement(view), parts.answer, parts.status);
  const cuts = view.cuts.map(cutElement);
  if (cuts.length) root.append(foldElement("What travels", ...cuts));
  if (view.candidates.length) root.append(foldElement("Predicted time of a step", candidatesElement(view.candidates)));
  if (view.edits.length) root.append(foldElement("What the plan does", editsElement(view.edits)));
  if (view.causes.length) root.append(causesElement(parts, view));
  if (view.rows.length) {
    root.append(refusalsElement(parts, view));
    fillRefusals(parts, state);
  }
  if (parts.causes) fillCauses(parts, state);
  placeAnswer(parts, state);
  return parts;
}

function markPicked(parts, state) {
  if (!parts.boxes) return;
  for (const pick of parts.boxes.querySelectorAll(".wbb-pick")) {
    const on = state.box === Number(pick.dataset.box);
    pick.setAttribute("aria-pressed", String(on));
    pick.parentElement.classList.toggle("wbb-on", on);
  }
  rove(parts.boxes, ".wbb-pick");
}

function boundaryController(root, parts, state, onSelect, onNode) {
  const picked = (name) => {
    onSelect(name);
    onNode(nodeOfPick(state.view, state.box, state.row));
  };
  const show = () => {
    markPicked(parts, state);
    if (parts.rows) fillRefusals(parts, state);
    return placeAnswer(parts, state);
  };
  // after a click or a key: in view, and read aloud
  const tell = () => {
    const answer = show();
    parts.status.textContent = answer ? answerOf(state).words : "";
    return () => answer && answer.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  return {
    state,
    // once more: its answer goes
    pickBox(place) {
      const again = state.box === place && !state.inTable && state.row < 0;
      Object.assign(state, { box: again ? -1 : place, row: -1, inTable: false, node: "" });
      tell()();
      picked(again ? "" : state.view.boxes[place].title);
    },
    // a row of the table, or one of those that a box's answer lists
    pickRow(place, inTable) {
      const alone = state.view.boxes.findIndex((one) => one.rows.length === 1 && one.rows[0] === place);
      Object.assign(state, { box: inTable ? alone : state.box, row: place, inTable, node: "" });
      const reveal = tell();
      // what was clicked has been filled again
      const holder = inTable ? parts.rows : parts.answer;
      focusOn(holder.querySelector(`[data-row="${place}"]`));
      reveal();
      picked(state.view.rows[place].names[0]);
    },
    pickCause(place) {
      state.cause = state.cause === place ? -1 : place;
      if (parts.rows && state.cause >= 0) parts.rows.closest("details").open = true;
      fillCauses(parts, state);
      fillRefusals(parts, state);
      placeAnswer(parts, state);
    },
    showCauses(all = true) {
      state.allCauses = all;
      if (parts.causes) fillCauses(parts, state);
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
    // Picks the box that holds a graph node, opened as far as the node, or its row; "" clears. Tells
    // nobody. Returns whether the node is there; where it is not, nothing is picked.
    selectNode(name, { reveal = false } = {}) {
      const { view } = state;
      const place = name ? placeOfNode(view, name) : null;
      const boxes = place ? place.boxes : [];
      const box = boxes.length ? boxes[0] : -1;
      const row = place && (box < 0 || view.boxes[box].rows.includes(place.row)) ? place.row : -1;
      for (const inner of boxes.slice(1, -1)) state.opened.add(inner);
      Object.assign(state, { box, row, inTable: box < 0 && row >= 0, node: place ? name : "" });
      const answer = show();
      if (parts.boxes) showBox(parts, box);
      if (answer && reveal) answer.scrollIntoView({ block: "nearest", inline: "nearest" });
      return place !== null;
    },
  };
}

// a box in view within the frame of the picture; the page stays where it is
function showBox(parts, place) {
  const pick = parts.boxes.querySelector(`[data-box="${place}"]`);
  if (!pick) return;
  const { offsetLeft: left, offsetWidth: width } = pick.parentElement;
  const { scrollLeft, clientWidth } = parts.frame;
  if (left < scrollLeft || left + width > scrollLeft + clientWidth) {
    parts.frame.scrollLeft = left - (clientWidth - width) / 2;
  }
}

function watchClicks(root, view, signal) {
  const acts = [
    ["[data-accept]", (one) => view.move.accept(one.dataset.accept)],
    ["[data-reject]", (one) => view.move.reject(one.dataset.reject)],
    ["[data-restore]", () => view.move.restore()],
    ["[data-box]", (one) => view.pickBox(Number(one.dataset.box))],
    ["[data-row]", (one) => view.pickRow(Number(one.dataset.row), !one.closest(".wbb-under"))],
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
    if (key === "/" && parts.search && target !== parts.search) {
      parts.search.closest("details").open = true;
      parts.search.focus();
    } else if (target === parts.search) {
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
  if (target === parts.handle) {
    const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, Home: -Infinity, End: Infinity }[key];
    if (by) view.move.step(by);
    return Boolean(by);
  }
  if (parts.boxes && parts.boxes.contains(target)) {
    const tick = key === " " && target.parentElement.querySelector("[data-tick]");
    if (tick) view.move.tick(Number(tick.dataset.tick), !tick.checked);
    const to = tick ? null : moveTarget(parts.boxes, ".wbb-pick", target, key);
    if (to) focusOn(to);
    return Boolean(tick || to);
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
  let opened = [];
  const print = (on) => () => {
    if (on) opened = [...root.querySelectorAll(".wbb-fold:not([open])")];
    for (const fold of opened) fold.open = on;
    root.dataset.wbTheme = on || !prefersDark() ? "light" : "dark";
    root.classList.toggle("wb-print", on);
    view.showAll(on);
    view.showCauses(on);
  };
  addEventListener("beforeprint", print(true), { signal });
  addEventListener("afterprint", print(false), { signal });
}

//   content: what BoundaryView.to_json returned. signal: ends every subscription.
//   onSelect: called with the name of what was picked. onCut: called with the leaves of a new cut.
//   onNode: called with the graph node that was picked, "" for a group of nodes and for nothing.
//   ask: asks the kernel what a cut is predicted to give, by its leaves; null without a kernel.
//   next: what to do with a line that was moved, a sentence.
export function mountBoundary(
  root,
  content,
  { signal, onSelect = () => {}, onNode = () => {}, onCut = () => {}, ask = null, next = "" },
) {
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
  const view = boundaryController(root, parts, state, onSelect, onNode);
  if (content.flow) {
    const again = (leaves) => {
      if (!state.inTable) placeAnswer(parts, state);
      onCut(leaves);
    };
    view.move = moveController(content, parts, state, { ask, onCut: again, next });
    view.move.draw();
    view.move.reveal();
    watchLine(parts, view.move, signal);
    watchInside(parts, state, view.move, signal);
    markPicked(parts, state);
  }
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

// ticks and foldings of what stands inside the picked box
function watchInside(parts, state, move, signal) {
  const onChange = (event) => {
    const { leaves } = event.target.dataset;
    if (!leaves) return;
    move.tickLeaves(leaves.split(",").map(Number), event.target.checked);
    focusOn(parts.answer.querySelector(`[data-leaves="${leaves}"]`));
  };
  parts.answer.addEventListener("change", onChange, { signal });
  const onToggle = (event) => {
    const { inside } = event.target.dataset;
    if (inside && event.target.open) state.opened.add(Number(inside));
    else if (inside) state.opened.delete(Number(inside));
  };
  parts.answer.addEventListener("toggle", onToggle, { signal, capture: true });
}

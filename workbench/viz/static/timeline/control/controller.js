// What a timeline can do: the one place that changes its state and asks for a frame.
import { laneOf, pathOrder, stepOf } from "../draw/decode.js";
import { drawFrame, drawOverlay } from "../draw/draw_frame.js";
import { layoutLanes } from "../draw/layout.js";
import { GUTTER, bisect, fitWindow, panWindow, zoomWindow } from "../draw/scales.js";
import { fillCard, placeCard } from "./hover.js";
import { addMarking } from "./marking.js";
import { spanOfNode } from "./nodes.js";
import { pickAt, stepAt } from "./pick.js";
import { findMatches, matchWords, nextMatch } from "./search.js";
import { rescale, windowOn, windowOnStep } from "./state.js";
import { fillTable } from "./table.js";

const TABLE_DELAY = 120; // ms without a change of the window before the Table is summed again

export function newController(s, parts, signal, onSelect) {
  const listeners = new Set();
  let due = ""; // what the next frame draws: "", "overlay" or "all"
  let timer = 0;
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    listeners.clear();
  });

  function frame() {
    const all = due === "all";
    due = "";
    if (signal.aborted || s.width <= 0) return;
    if (all) drawNow();
    else drawOver();
  }
  function drawOver() {
    drawOverlay(parts.over.getContext("2d"), s);
  }
  function drawNow() {
    rescale(s);
    drawFrame(parts.lanes.getContext("2d"), s);
    drawOver();
  }
  function invalidate(what = "all") {
    if (!due) requestAnimationFrame(frame);
    if (due !== "all") due = what;
  }
  function tell(kind, value) {
    for (const heard of listeners) heard(kind, value);
  }
  function later() {
    if (!s.flags.table) return;
    clearTimeout(timer);
    timer = setTimeout(() => fillTable(parts.table, s), TABLE_DELAY);
  }

  const view = {
    state: s,
    parts,
    drawNow,
    invalidate,
    later,
    tell,
    // calls back with what changed, and to what: "window", "cursor", "range", "node", "search", …
    listen(heard) {
      listeners.add(heard);
    },
    setWindow(window) {
      s.window = window;
      rescale(s);
      invalidate();
      later();
      tell("window", window);
    },
    zoom(factor) {
      const [from, to] = s.window;
      view.setWindow(zoomWindow(s.window, factor, (from + to) / 2, s.model.duration));
    },
    pan(share) {
      view.setWindow(panWindow(s.window, share, s.model.duration));
    },
    showAll() {
      view.setWindow(fitWindow(0, s.model.duration, 0.02, s.model.duration));
    },
    fit() {
      const { start, dur, stepStart, stepEnd, duration: total } = s.model;
      const i = s.selected;
      if (i >= 0) view.setWindow(fitWindow(start[i], start[i] + dur[i], 1, total));
      else if (s.step >= 0) {
        view.setWindow(fitWindow(stepStart[s.step], stepEnd[s.step], 0.06, total));
      } else view.showAll();
    },
    moveStep(by) {
      if (!s.model.steps) return;
      s.step = Math.max(0, Math.min(s.model.steps - 1, s.step + by));
      tell("step", s.step);
      view.setWindow(windowOnStep(s, s.step));
    },
    select(i, { reveal = false, tell: noted = true } = {}) {
      s.selected = i;
      if (i >= 0) {
        const k = stepOf(s.model, i);
        const ofStep = s.model.lanes[laneOf(s.model, i)].kind !== "prefetch";
        if (ofStep && k >= 0) s.step = k;
        if (reveal) view.setWindow(windowOn(s, i));
      }
      parts.describe(i);
      invalidate();
      if (noted) onSelect(i);
    },
    // The span of a graph node in the step that is shown, else the nearest; "" clears. Tells nobody.
    // Returns whether the node is there; where it is not, nothing is selected.
    selectNode(name, { reveal = false } = {}) {
      const middle = (s.window[0] + s.window[1]) / 2;
      const i = name && !s.model.pending ? spanOfNode(s.model, name, s.step, middle) : -1;
      view.select(i, { reveal, tell: false });
      return i >= 0;
    },
    click(x, y) {
      const t = s.window[0] + (x - GUTTER) / s.scale;
      const k = stepAt(s, t);
      const found = pickAt(s, x, y);
      if (k >= 0 && x >= GUTTER) s.step = k;
      view.select(found && found.kind === "span" ? found.i : -1);
    },
    hover(x, y) {
      tell("cursor", x < GUTTER ? null : s.window[0] + (x - GUTTER) / s.scale);
      const found = x < 0 ? null : pickAt(s, x, y);
      const hovered = found && found.kind === "span" ? found.i : -1;
      if (found) {
        fillCard(parts.card, s, found);
        parts.card.hidden = false;
        placeCard(parts.card, x, y, s.width, s.layout.height);
      } else view.hideCard();
      if (hovered === s.hovered) return;
      s.hovered = hovered;
      drawOver();
    },
    hideCard() {
      parts.card.hidden = true;
    },
    search(query) {
      s.query = query;
      s.matches = findMatches(s.model, query);
      parts.found.textContent = matchWords(s.model, s.matches, query);
      invalidate();
      tell("search", query);
    },
    nextMatch() {
      if (!s.matches) return;
      const { start } = s.model;
      const i = nextMatch(s.model, s.matches, s.selected < 0 ? s.window[0] : start[s.selected]);
      if (i >= 0) view.select(i, { reveal: true });
    },
    // the op of the critical path before or after the selected one, or the middle of the window
    alongPath(by) {
      if (!s.model.critical || s.model.pending) return;
      const { start } = s.model;
      const order = pathOrder(s.model);
      const now = s.selected < 0 ? (s.window[0] + s.window[1]) / 2 : start[s.selected];
      const after = bisect(0, order.length, (k) => start[order[k]] > now);
      const before = bisect(0, order.length, (k) => start[order[k]] >= now) - 1;
      const i = order[by > 0 ? after : before];
      if (i !== undefined) view.select(i, { reveal: true });
    },
    focusSearch() {
      parts.search.focus();
    },
    toggle(flag) {
      s.flags[flag] = !s.flags[flag];
      if (flag === "table" && s.flags.table) fillTable(parts.table, s);
      if (flag === "table") parts.table.hidden = !s.flags.table;
      if (flag === "path") {
        s.layout = layoutLanes(s.model.lanes, s.flags.path);
        view.refit();
      }
      invalidate();
      tell(flag, s.flags[flag]);
      return s.flags[flag];
    },
  };
  addMarking(view, signal);
  return view;
}

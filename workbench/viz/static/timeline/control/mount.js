// Puts one timeline into an element: builds the parts, wires them, and undoes all of it when the
// signal aborts.
import { element, keyHints, suppressShortcuts } from "../../shared/dom.js";
import { duration } from "../../shared/format.js";
import { pageNumber } from "../../shared/page_number.js";
import { prefersDark, watchTheme } from "../../shared/theme.js";
import { readTheme } from "../draw/colors.js";
import { decode } from "../draw/decode.js";
import { factsOf, spanName } from "../draw/describe.js";
import { legend, repaintSwatches } from "../draw/swatches.js";
import { newController } from "./controller.js";
import { KEY_HINTS, KEY_WORDS, PATH_HINTS, PATH_WORDS, watchKeys } from "./keys.js";
import { nodeOf } from "./nodes.js";
import { watchPointer } from "./pointer.js";
import { newState, resizeState } from "./state.js";
import { rangeWords } from "./table.js";

const BUTTON = "wb-btn";

function hasPath(header) {
  return header.lanes.some(({ kind }) => kind === "critical");
}

function buildParts(root, header, theme) {
  const id = `wb-timeline-${pageNumber()}`;
  const canvas = element("canvas", {
    class: "wb-lanes",
    tabindex: "0",
    role: "application",
    "aria-label":
      `Timeline${header.title ? " of " + header.title : ""}. ${KEY_WORDS}` +
      (hasPath(header) ? PATH_WORDS : ""),
    "aria-describedby": `${id}-about`,
  });
  const parts = {
    lanes: canvas,
    over: element("canvas", { class: "wb-over", "aria-hidden": "true" }),
    card: element("div", { class: "wb-card", hidden: "" }),
    search: element("input", {
      type: "search",
      class: "wb-search",
      placeholder: "Search ops (/)",
      "aria-label": "Search ops by name",
    }),
    found: element("span", { class: "wb-quiet wb-found", role: "status" }),
    about: element("div", { class: "wb-about", id: `${id}-about`, role: "status" }),
    table: element("div", { class: "wb-inview", hidden: "", tabindex: "0", role: "region" }),
    tools: element("div", { class: "wb-tools" }),
    range: element("p", { class: "wb-quiet wb-range" }),
    message: element("p", { class: "wb-quiet wb-message", role: "status", hidden: "" }),
  };
  parts.table.setAttribute("aria-label", "Spans in view");
  parts.stack = element("div", { class: "wb-stack" }, parts.lanes, parts.over, parts.card);
  const sentence = element("p", { class: "wb-sentence" });
  for (const [text, strong] of header.sentence) {
    sentence.append(strong ? element("strong", {}, text) : text);
  }
  root.replaceChildren(sentence);
  if (header.notice) root.append(element("p", { class: "wb-quiet" }, header.notice));
  root.append(
    parts.tools,
    legend(theme, header.families),
    element("div", { class: "wb-frame" }, parts.stack),
    parts.range,
    parts.message,
    parts.about,
    parts.table,
  );
  return parts;
}

function button(words, act, signal, attributes = {}) {
  const made = element("button", { type: "button", class: BUTTON, ...attributes }, words);
  made.addEventListener("click", () => act(made), { signal });
  return made;
}

function fillTools(parts, view, header, signal) {
  const toggle = (words, flag, on) =>
    button(words, (b) => b.setAttribute("aria-pressed", view.toggle(flag)), signal, {
      "aria-pressed": String(on),
    });
  const kinds = new Set(header.lanes.map((lane) => lane.kind));
  const { tools } = parts;
  tools.append(parts.search, parts.found, element("span", { class: "wb-space" }));
  view.pressPath = () => {};
  if (hasPath(header)) {
    const light = toggle("Critical path", "path", false);
    view.pressPath = () => light.click();
    tools.append(light);
  }
  if (kinds.has("step") && (kinds.has("prefetch") || kinds.has("receive"))) tools.append(toggle("Flows", "flows", true));
  if (kinds.has("inter_op")) tools.append(toggle("Gaps", "gaps", true));
  tools.append(
    toggle("Table", "table", false),
    button("−", () => view.zoom(1 / 0.6), signal, { "aria-label": "Zoom out" }),
    button("+", () => view.zoom(0.6), signal, { "aria-label": "Zoom in" }),
    button("All", () => view.showAll(), signal, { "aria-label": "All: show the whole trace" }),
  );
}

function describer(parts, getView, signal) {
  return (i) => {
    const view = getView();
    const { model } = view.state;
    if (i < 0) {
      const wheel = element("span", {}, "Click the timeline, then the wheel zooms; elsewhere ");
      wheel.append(element("kbd", {}, "Ctrl"), "wheel");
      const known = hasPath(model.header) ? [...KEY_HINTS, ...PATH_HINTS] : KEY_HINTS;
      const hints = keyHints(known);
      hints.append(wheel);
      parts.about.replaceChildren(hints);
      return;
    }
    const facts = element("div", {});
    for (const [label, value] of factsOf(model, i)) {
      const words = element("span", { class: "wb-fact" });
      words.append(element("span", { class: "wb-quiet" }, label), ` ${value}`);
      facts.append(words, " ");
    }
    const name = element("div", { class: "wb-mono wb-strong" }, spanName(model, i));
    const clear = () => {
      view.select(-1);
      parts.lanes.focus({ preventScroll: true });
    };
    parts.about.replaceChildren(
      element("div", { class: "wb-selected" }, name, facts),
      button("Zoom to it", () => view.fit(), signal),
      button("Clear", clear, signal),
    );
  };
}

function watchSearch(parts, view, signal) {
  parts.search.addEventListener("input", () => view.search(parts.search.value), { signal });
  const listener = (event) => {
    event.stopPropagation();
    if (event.key === "Enter") view.nextMatch();
    if (event.key !== "Escape") return;
    event.preventDefault();
    parts.search.value = "";
    view.search("");
    parts.lanes.focus({ preventScroll: true });
  };
  parts.search.addEventListener("keydown", listener, { signal });
}

// canvases follow the width of their frame and the ratio of the screen
function watchSize(root, parts, view, signal) {
  const fit = () => {
    const width = parts.stack.clientWidth;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    const { height } = view.state.layout;
    for (const canvas of [parts.lanes, parts.over]) {
      canvas.style.height = `${height}px`;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    resizeState(view.state, width, ratio);
    if (!view.state.theme.live) view.restyle();
    else view.drawNow();
    if (!view.state.model.pending) root.dataset.wbReady = "true";
  };
  const observer = new ResizeObserver(fit);
  observer.observe(parts.stack);
  signal.addEventListener("abort", () => observer.disconnect());
  return fit;
}

function watchPage(root, view, parts, header, signal) {
  view.restyle = () => {
    view.state.theme = readTheme(root, header.families);
    repaintSwatches(root, view.state.theme);
    if (view.state.width) view.drawNow();
  };
  const follow = () => {
    root.dataset.wbTheme = prefersDark() ? "dark" : "light";
    view.restyle();
  };
  watchTheme(signal, follow);
  // on paper the light theme, whatever the screen shows, and the range in words
  const print = (on) => () => {
    const { window: shown, model } = view.state;
    const whole = duration(model.duration);
    parts.range.textContent = `Shown: ${rangeWords(shown, model.duration)} of ${whole}.`;
    root.dataset.wbTheme = on || !prefersDark() ? "light" : "dark";
    root.classList.toggle("wb-print", on);
    view.restyle();
  };
  addEventListener("beforeprint", print(true), { signal });
  addEventListener("afterprint", print(false), { signal });
  document.addEventListener("keydown", () => view.hideCard(), { signal, capture: true });
  parts.lanes.addEventListener("blur", () => view.hideCard(), { signal });
}

// Mounts a timeline. Without bytes its frame and lane names stand at once; setData fills in.
//   header: what TimelineView.to_json_header made. bytes: a Uint8Array, or null.
//   signal: ends every subscription. onSelect: called with the index of the selected span, or -1.
//   onNode: called with the name of its graph node, "" where it is of none and where it was cleared.
export function mount(root, header, bytes, { signal, onSelect = () => {}, onNode = () => {} }) {
  // first, so that what cannot be read leaves the element as it was
  const model = decode(header, bytes);
  root.classList.add("wb", "wb-timeline");
  suppressShortcuts(root, signal);
  root.dataset.wbTheme = prefersDark() ? "dark" : "light";
  const theme = readTheme(root, header.families);
  const parts = buildParts(root, header, theme);
  const tell = (i) => {
    onSelect(i);
    onNode(nodeOf(view.state.model, i));
  };
  const view = newController(newState(model, theme), parts, signal, tell);
  parts.describe = describer(parts, () => view, signal);
  parts.describe(-1);
  fillTools(parts, view, header, signal);
  watchSearch(parts, view, signal);
  watchKeys(parts.lanes, view, signal);
  watchPointer(parts.lanes, view, signal);
  watchPage(root, view, parts, header, signal);
  const fit = watchSize(root, parts, view, signal);
  view.refit = fit;
  fit();
  view.setData = (data) => {
    const { flags } = view.state;
    Object.assign(view.state, newState(decode(header, data), view.state.theme, flags));
    view.state.theme.stripKey = "";
    fit();
  };
  view.say = (words) => {
    parts.message.textContent = words;
    parts.message.hidden = !words;
  };
  return view;
}

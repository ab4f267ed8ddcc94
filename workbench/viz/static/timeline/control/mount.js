// Puts one timeline into an element: builds the parts, wires them, and undoes all of it when the
// signal aborts.
import { suppressShortcuts } from "../../shared/dom.js";
import { duration } from "../../shared/format.js";
import { prefersDark, watchTheme } from "../../shared/theme.js";
import { readTheme } from "../draw/colors.js";
import { decode } from "../draw/decode.js";
import { repaintSwatches } from "../draw/swatches.js";
import { newDescriber } from "./about.js";
import { newController } from "./controller.js";
import { addKeyList } from "./key_list.js";
import { watchKeys } from "./keys.js";
import { nodeOf } from "./nodes.js";
import { buildParts, fillMarkedTools, fillTools, hasPath, watchLegend } from "./parts.js";
import { watchPointer } from "./pointer.js";
import { newState, resizeState } from "./state.js";
import { rangeWords } from "./table.js";

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
    // Paper takes what is painted by now; reading a pixel has it painted.
    if (on) for (const one of [parts.lanes, parts.over]) one.getContext("2d").getImageData(0, 0, 1, 1);
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
    const name = nodeOf(view.state.model, i);
    onNode(name);
    view.tell("node", name);
  };
  const view = newController(newState(model, theme), parts, signal, tell);
  parts.describe = newDescriber(parts, view, signal);
  parts.describe(-1);
  fillTools(parts, view, header, signal);
  fillMarkedTools(parts, view, signal);
  watchLegend(parts, view, signal);
  addKeyList(view, parts.keys, hasPath(header), signal);
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

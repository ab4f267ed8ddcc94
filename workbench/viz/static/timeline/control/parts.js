// The elements of one timeline, and the buttons above it.
import { sayCopied } from "../../shared/copy.js";
import { element } from "../../shared/dom.js";
import { pageNumber } from "../../shared/page_number.js";
import { legend } from "../draw/swatches.js";
import { KEY_WORDS, PATH_WORDS } from "./keys.js";

const BUTTON = "wb-btn";

export function hasPath(header) {
  return header.lanes.some(({ kind }) => kind === "critical");
}

// what it shows, its news, and the keys
function spokenName(header) {
  const news = header.sentence.map(([text]) => text).join("");
  const title = `Timeline${header.title ? ` of ${header.title}` : ""}.`;
  return `${title} ${news} ${KEY_WORDS}${hasPath(header) ? PATH_WORDS : ""}`;
}

function newParts(header) {
  const id = `wb-timeline-${pageNumber()}`;
  const region = (words, attributes) =>
    element("div", { hidden: "", tabindex: "0", role: "region", "aria-label": words, ...attributes });
  return {
    lanes: element("canvas", {
      class: "wb-lanes",
      tabindex: "0",
      role: "application",
      "aria-label": spokenName(header),
      "aria-describedby": `${id}-about`,
    }),
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
    marked: region("Marked stretch", { class: "wb-marked" }),
    table: region("Spans in view", { class: "wb-inview" }),
    keys: element("div", { class: "wb-keylist", hidden: "", role: "group", "aria-label": "Keys of the timeline" }),
    tools: element("div", { class: "wb-tools" }),
    range: element("p", { class: "wb-quiet wb-range" }),
    message: element("p", { class: "wb-quiet wb-message", role: "status", hidden: "" }),
  };
}

export function buildParts(root, header, theme) {
  const parts = newParts(header);
  parts.legend = legend(theme, header.families);
  parts.stack = element("div", { class: "wb-stack" }, parts.lanes, parts.over, parts.card);
  const sentence = element("p", { class: "wb-sentence" });
  for (const [text, strong] of header.sentence) {
    sentence.append(strong ? element("strong", {}, text) : text);
  }
  root.replaceChildren(sentence);
  if (header.notice) root.append(element("p", { class: "wb-quiet" }, header.notice));
  root.append(
    parts.tools,
    parts.legend,
    element("div", { class: "wb-frame" }, parts.stack),
    parts.range,
    parts.message,
    parts.about,
    parts.keys,
    parts.marked,
    parts.table,
  );
  return parts;
}

export function toolButton(words, act, signal, attributes = {}) {
  const made = element("button", { type: "button", class: BUTTON, ...attributes }, words);
  made.addEventListener("click", () => act(made), { signal });
  return made;
}

// a button that follows a flag of the view, whoever changes it
function flagButton(words, flag, view, signal) {
  const { flags } = view.state;
  const made = toolButton(words, () => view.toggle(flag), signal, { "aria-pressed": String(flags[flag]), "data-flag": flag });
  view.listen((kind, on) => kind === flag && made.setAttribute("aria-pressed", String(on)));
  return made;
}

export function fillTools(parts, view, header, signal) {
  const toggle = (words, flag) => flagButton(words, flag, view, signal);
  const kinds = new Set(header.lanes.map((lane) => lane.kind));
  const { tools } = parts;
  tools.append(parts.search, parts.found, element("span", { class: "wb-space" }));
  view.pressPath = () => hasPath(header) && view.toggle("path");
  if (hasPath(header)) tools.append(toggle("Critical path", "path"));
  if (kinds.has("step") && (kinds.has("prefetch") || kinds.has("receive"))) tools.append(toggle("Flows", "flows"));
  if (kinds.has("inter_op")) tools.append(toggle("Gaps", "gaps"));
  tools.append(
    toggle("Table", "table"),
    toolButton("−", () => view.zoom(1 / 0.6), signal, { "aria-label": "Zoom out" }),
    toolButton("+", () => view.zoom(0.6), signal, { "aria-label": "Zoom in" }),
    toolButton("All", () => view.showAll(), signal, { "aria-label": "All: show the whole trace" }),
    toolButton("?", () => view.showKeys(), signal, { "aria-label": "All keys" }),
  );
}

// The region of what is marked: its sums, and what can be done with them.
export function fillMarkedTools(parts, view, signal) {
  parts.marked.append(
    element("div", { class: "wb-marktools" },
      toolButton("Zoom to the mark", () => view.zoomToMarked(), signal),
      toolButton("Copy link", (one) => sayCopied(one, view.copyLink()), signal, { hidden: "", "data-link": "" }),
      toolButton("Clear the mark", () => view.mark(null), signal)),
    element("div", { class: "wb-sums" }),
  );
}

// A click on a family keeps it alone, or beside those that are kept.
export function watchLegend(parts, view, signal) {
  const buttons = [...parts.legend.querySelectorAll("button")];
  for (const one of buttons) {
    one.addEventListener("click", () => view.keepFamily(Number(one.dataset.family)), { signal });
  }
  view.listen((kind, kept) => {
    if (kind !== "kept") return;
    for (const one of buttons) {
      one.setAttribute("aria-pressed", String(kept !== null && kept[Number(one.dataset.family)] === 1));
    }
    parts.legend.classList.toggle("wb-filtered", kept !== null);
  });
}

// Tabs and what they show: asked for once, then kept, as long as run and baseline are the same.
import { mountPair } from "../before_after/embed.js";
import { mountBoundary } from "../boundary/mount.js";
import { offerCsv } from "../shared/csv.js";
import { element } from "../shared/dom.js";
import { linkPane, markNode, markTable } from "../shared/linking.js";
import { unpacked } from "../shared/packed_json.js";
import { inflate } from "../shared/unpack.js";
import { mount } from "../timeline/control/mount.js";
import { figuresElement } from "./figures.js";
import { makeSortable } from "./runs_table.js";

const WAIT_BEFORE_WORDS = 300; // ms until "loading" is said
const OF_A_KERNEL = "[data-toggle], [data-capture], [data-peaks]";
const UNMARKED = ["", ""]; // op and table

export function tabsElement(host, onTab, signal) {
  const bar = element("div", { class: "wbp-tabs", role: "tablist", "aria-label": "Views of a run" });
  const buttons = host.view.tabs.map(([key, title]) => {
    const id = `wbp-${host.id}-tab-${key}`;
    const made = element("button", { type: "button", role: "tab", id, "data-tab": key }, title);
    made.setAttribute("aria-controls", `wbp-${host.id}-pane-${key}`);
    made.addEventListener("click", () => onTab(key), { signal });
    return made;
  });
  bar.append(...buttons);
  const onKey = (event) => {
    const count = buttons.length;
    const now = buttons.indexOf(event.target);
    const at = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: count - 1 }[event.key];
    if (at === undefined) return;
    const next = buttons[(at + count) % count];
    onTab(next.dataset.tab);
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  bar.addEventListener("keydown", onKey, { signal });
  return { bar, buttons };
}

function paneElement(host, key, holder) {
  const id = `wbp-${host.id}-pane-${key}`;
  const attributes = { class: "wbp-pane", id, "data-pane": key, hidden: "" };
  const tab = `wbp-${host.id}-tab-${key}`;
  return element("div", { ...attributes, role: "tabpanel", "aria-labelledby": tab, tabindex: "0" }, holder);
}

// Fills a pane with a content; returns what can be selected in it, and ends with the signal.
async function fillPane(holder, key, content, links, host, signal) {
  const root = element("div", {});
  const lead = content.lead ? [element("p", { class: "wb-quiet wbp-step" }, content.lead)] : [];
  holder.replaceChildren(...lead, root);
  if (content.timeline) {
    const data = content.packed ? await inflate(content.data) : content.data;
    const view = mount(root, content.timeline, data, { signal, onNode: links.onNode });
    return { drawn: true, select: (name) => view.selectNode(name, { reveal: true }) };
  }
  if (content.boundary) {
    const json = await unpacked(content.data);
    const cuts = content.asks ? host.cuts(content.run) : null;
    const view = mountBoundary(root, json, {
      signal,
      onNode: links.onNode,
      ask: cuts ? cuts.ask : null,
      next: cuts ? "Choose Moved under Stage, then Run, to measure it." : "",
      onCut: cuts ? cuts.moved : () => {},
    });
    if (cuts) cuts.listen(view.move, signal);
    return { drawn: true, select: (name) => view.selectNode(name) };
  }
  // markup of the package's own templates, in which every text of the user is escaped
  root.innerHTML = content.html;
  linkPane(root, { ...links, signal });
  if (content.pair) {
    const { pair: headers, datas, packed } = content;
    const pair = await mountPair(root, { headers, datas, packed }, { signal, onNode: links.onNode });
    offerCsv(root);
    const select = (name) => {
      markNode(root, name);
      pair.selectNode(name, { reveal: true });
    };
    return { select };
  }
  // radios of the same name anywhere in the page are one group
  for (const one of root.querySelectorAll('[name="wbp-base"]')) {
    one.name = `${one.name}-${host.id}`;
    one.checked = one.defaultChecked;
    one.disabled = !host.hasBase(Number(one.value));
  }
  if (root.querySelector('[name^="wbp-base"]:disabled')) {
    const words = "Of other baselines this page has nothing; a notebook shows them.";
    root.querySelector(".wbr-legend").after(element("p", { class: "wbp-few" }, words));
  }
  makeSortable(root, host.sorting, signal);
  root.querySelectorAll(host.live ? `${OF_A_KERNEL}, [data-tried]` : "[data-tried]").forEach(makeButton);
  offerCsv(root, key);
  if (content.figures?.length) root.append(figuresElement(host, key, content.figures, signal));
  return { select: (name) => markNode(root, name), table: (name) => markTable(root, name) };
}

// what only a kernel can do is words, or nothing, where there is none
function makeButton(one) {
  const label = one.getAttribute("aria-label");
  const made = element("button", { type: "button", class: "wbp-btn", "aria-label": label }, ...one.childNodes);
  Object.assign(made.dataset, one.dataset);
  one.replaceWith(made);
}

export function panesElement(host, links, signal) {
  const root = element("div", { class: "wbp-panes" });
  const panes = new Map();
  for (const [key] of host.view.tabs) {
    const holder = element("div", { class: "wbp-holder" });
    const pane = paneElement(host, key, holder);
    panes.set(key, { key, pane, holder, of: "", life: null, selectable: null, marked: UNMARKED });
    root.append(pane);
  }
  const drop = (each) => {
    if (each.life) each.life.abort();
    Object.assign(each, { of: "", life: null, selectable: null, marked: UNMARKED });
  };
  signal.addEventListener("abort", () => panes.forEach(drop));
  // the pane that a selection comes from, while it is told
  let from = null;
  const linksOf = (key) => {
    const telling = (tell) => (name) => {
      from = key;
      tell(name);
      from = null;
    };
    return { onNode: telling(links.onNode), onTable: telling(links.onTable) };
  };

  async function load(key) {
    const each = panes.get(key);
    const of = host.contentKey(key);
    if (each.of === of) return mark(each);
    drop(each);
    const life = new AbortController();
    Object.assign(each, { of, life });
    const timer = setTimeout(() => {
      each.holder.replaceChildren(element("p", { class: "wb-quiet", role: "status" }, "Loading"));
    }, WAIT_BEFORE_WORDS);
    try {
      const content = await host.content(key);
      clearTimeout(timer);
      if (life.signal.aborted) return;
      each.selectable = await fillPane(each.holder, key, content, linksOf(key), host, life.signal);
      mark(each);
    } catch (error) {
      clearTimeout(timer);
      if (life.signal.aborted) return;
      each.of = "";
      each.holder.replaceChildren(element("p", { class: "wb-sentence", role: "status" }, error.message));
    }
  }
  // A pane that is hidden is marked once it shows; what was drawn keeps what was picked in it.
  function mark(each) {
    const { selectable, pane, key } = each;
    if (!selectable || pane.hidden) return;
    const now = [host.get("selected"), host.get("selected_table")];
    const changed = now.map((name, i) => name !== each.marked[i]);
    each.marked = now;
    if (changed[0] && !(selectable.drawn && from === key)) selectable.select(now[0]);
    if (changed[1] && selectable.table) selectable.table(now[1]);
  }
  return {
    root,
    show(key) {
      for (const [one, { pane }] of panes) pane.hidden = one !== key;
      return load(key);
    },
    mark() {
      panes.forEach(mark);
    },
    element: (key) => panes.get(key).pane,
  };
}

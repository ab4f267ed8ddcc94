// The two places a boundary stands in: a report's page and a notebook's widget.
import { bytesOf } from "../shared/bytes.js";
import { element, hideStill, keepForPaper } from "../shared/dom.js";
import { unpacked } from "../shared/packed_json.js";
import { fromBase64 } from "../shared/unpack.js";
import { mountBoundary } from "./mount.js";

// a kernel that says nothing for so long is gone, or busy for longer than one waits
const KERNEL_MS = 5000;

// Mounts one boundary of a page from the data beside it. The page stays as it is where it cannot be
// drawn: then there is no view.
export async function mountBoundaryOf(root, page = document) {
  try {
    const packed = page.getElementById(`${root.dataset.wbBoundary}-data`).textContent;
    const { signal } = new AbortController();
    const still = [...root.childNodes];
    const view = mountBoundary(root, await unpacked(fromBase64(packed)), { signal });
    keepForPaper(root, still);
    return view;
  } catch (error) {
    root.append(element("p", { class: "wb-quiet", role: "status" }, error.message));
    return null;
  }
}

// Mounts every boundary of a page.
export async function mountBoundaries(page = document) {
  const views = [];
  for (const root of page.querySelectorAll("[data-wb-boundary]")) {
    views.push(await mountBoundaryOf(root, page));
  }
  return views.filter(Boolean);
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
  const packed = bytesOf(model.get("packed"));
  // one question at a time, then the newest: a drag asks faster than a kernel answers
  let waiting = null;
  let next = null;
  let patience = 0;
  const ask = (leaves) => {
    next = leaves;
    if (waiting) return;
    [waiting, next] = [next, null];
    model.send({ ask: waiting });
    clearTimeout(patience);
    patience = setTimeout(() => view.move.unanswered(), KERNEL_MS);
  };
  const onCut = (leaves) => {
    model.set("ahead", leaves);
    model.save_changes();
  };
  const view = mountBoundary(root, await unpacked(packed), { signal: life.signal, onSelect, onCut, ask });
  hideStill(model.get("still"), life.signal);
  const onMessage = ({ told, final }) => {
    clearTimeout(patience);
    if (told) view.move.told(told);
    if (!final) return;
    waiting = null;
    if (next) ask(next);
    else if (!told) view.move.unanswered();
  };
  model.on("msg:custom", onMessage);
  const onSelected = () => {
    if (!own && model.get("selected")) view.select(model.get("selected"));
  };
  model.on("change:selected", onSelected);
  onSelected();
  return () => {
    clearTimeout(patience);
    life.abort();
    model.off("change:selected", onSelected);
    model.off("msg:custom", onMessage);
    root.remove();
  };
}

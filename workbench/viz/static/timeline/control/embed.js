// The two places a timeline stands in: a notebook's widget and a report's page.
import { bytesOf } from "../../shared/bytes.js";
import { element, hideStill, keepForPaper } from "../../shared/dom.js";
import { fromBase64, inflate } from "../../shared/unpack.js";
import { mount } from "./mount.js";

const ANSWER_AFTER = 4000; // ms

// One widget view. The data comes with the model where it is small, else by message: on request,
// or by itself soon after it was shown, in case the request waits behind running cells.
export function renderWidget({ model, el }) {
  const life = new AbortController();
  const root = document.createElement("div");
  el.append(root);
  let own = false;
  const onSelect = (i) => {
    own = true;
    model.set("selected", i);
    model.save_changes();
    own = false;
  };
  const view = mount(root, model.get("header"), null, { signal: life.signal, onSelect });
  hideStill(model.get("still"), life.signal);
  const onData = (bytes, packed) =>
    fill(view, bytes, packed)
      .then(() => {
        view.say("");
        if (model.get("selected") >= 0) view.select(model.get("selected"), { tell: false });
      })
      .catch((error) => view.say(error.message));
  const onMessage = (message, buffers) => {
    if (message.kind === "data" && view.state.model.pending) onData(bytesOf(buffers[0]), false);
  };
  const onSelected = () => {
    const i = model.get("selected");
    if (!own && !view.state.model.pending) view.select(i, { reveal: true, tell: false });
  };
  model.on("msg:custom", onMessage);
  model.on("change:selected", onSelected);
  const packed = model.get("packed");
  if (packed && packed.byteLength) onData(bytesOf(packed), true);
  else {
    model.send({ kind: "data" });
    const words =
      "The kernel has not sent the spans yet: it is busy, or not connected. " +
      "If it is not connected, run the cell again.";
    const timer = setTimeout(() => view.state.model.pending && view.say(words), ANSWER_AFTER);
    life.signal.addEventListener("abort", () => clearTimeout(timer));
  }
  return () => {
    life.abort();
    model.off("msg:custom", onMessage);
    model.off("change:selected", onSelected);
    root.remove();
  };
}

async function fill(view, bytes, packed) {
  view.setData(packed ? await inflate(bytes) : bytes);
}

// Mounts one timeline of a page from the data beside it. The page stays as it is where it cannot be
// drawn: then there is no view.
export async function mountTimeline(root, page = document) {
  const id = root.dataset.wbTimeline;
  try {
    const header = JSON.parse(page.getElementById(`${id}-header`).textContent);
    const packed = fromBase64(page.getElementById(`${id}-data`).textContent);
    const signal = new AbortController().signal;
    const still = [...root.childNodes];
    const view = mount(root, header, await inflate(packed), { signal });
    keepForPaper(root, still);
    return view;
  } catch (error) {
    root.append(element("p", { class: "wb-quiet", role: "status" }, error.message));
    return null;
  }
}

// Mounts every timeline of a page.
export async function mountAll(page = document) {
  const views = [];
  for (const root of page.querySelectorAll("[data-wb-timeline]")) {
    views.push(await mountTimeline(root, page));
  }
  return views.filter(Boolean);
}

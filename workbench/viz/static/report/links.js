// Links to a selection: what is selected, marked and in view of one timeline stands in the address.
import { copyText } from "../shared/copy.js";
import { nodeOf } from "../timeline/control/nodes.js";

const WRITE_AFTER = 250; // ms without a change
const TOLD = ["node", "range", "window"];

function ends(range) {
  return range.map((t) => Math.round(t)).join("~");
}

// the part of an address behind "#"
function linkOf(id, { window: shown, range, selected, model, step }) {
  const node = nodeOf(model, selected);
  const parts = new URLSearchParams({ at: id, window: ends(shown) });
  if (range) parts.set("marked", ends(range));
  if (node) {
    parts.set("op", node);
    if (step >= 0) parts.set("step", model.stepNumber[step]);
  }
  return parts.toString();
}

function rangeOf(words) {
  const numbers = (words || "").split("~").map(Number);
  return numbers.length === 2 && numbers.every(Number.isFinite) && numbers[1] > numbers[0] ? numbers : null;
}

// Writes what a user does in a timeline into the address, and offers it to be copied.
export function offerLinks(root, view) {
  if (view.linked) return;
  view.linked = true;
  const id = root.dataset.wbTimeline;
  let timer = 0;
  const write = () => history.replaceState(history.state, "", `#${linkOf(id, view.state)}`);
  view.listen((kind) => {
    if (view.mirrored || !TOLD.includes(kind)) return;
    clearTimeout(timer);
    timer = setTimeout(write, WRITE_AFTER);
  });
  view.copyLink = () => {
    write();
    return copyText(location.href);
  };
  view.parts.marked.querySelector("[data-link]").hidden = false;
}

// Shows what the address says: opens the folds around it, and mounts what they hold.
export async function followLink(page, mountShown, standing) {
  const link = new URLSearchParams(page.location.hash.slice(1));
  const id = link.get("at");
  const root = id && [...page.querySelectorAll("[data-wb-timeline]")].find((one) => one.dataset.wbTimeline === id);
  if (!root) return;
  for (let fold = root.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  await mountShown();
  const view = standing.get(root);
  if (!view) return;
  const { model } = view.state;
  const step = model.stepNumber.indexOf(Number(link.get("step")));
  if (link.has("step") && step >= 0) view.state.step = step;
  if (link.has("op")) view.selectNode(link.get("op"));
  const [shown, marked] = [rangeOf(link.get("window")), rangeOf(link.get("marked"))];
  if (shown) view.setWindow(shown);
  if (marked) view.mark(marked);
  root.scrollIntoView({ block: "center" });
}

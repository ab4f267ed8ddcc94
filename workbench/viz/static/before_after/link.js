// Two timelines beside each other: one scale, one cursor, one selection, one mark. A moment of one is
// that of the other which is as far from the start of its step.
import { element } from "../shared/dom.js";
import { fillMarked } from "../timeline/control/marked.js";
import { nodeOf } from "../timeline/control/nodes.js";

const FLAGS = ["flows", "gaps", "path", "table"];

// Links two mounted timelines; the sums of what is marked stand at the end of `root`.
//   labels: what each is called. onNode: as of `mount`, once for both.
export function linkTimelines(root, views, labels, { signal, onNode = () => {} }) {
  // the step of each whose starts stand above each other
  const anchors = views.map(({ state }) => state.step);
  let mirroring = false;

  const origin = (side) => {
    const { model } = views[side].state;
    return anchors[side] < 0 ? 0 : model.stepStart[anchors[side]];
  };
  const there = (t, side) => t - origin(side) + origin(1 - side);
  const moved = (range, side) => range && range.map((t) => there(t, side));
  const mirror = (act) => {
    if (mirroring) return;
    mirroring = true;
    for (const view of views) view.mirrored = true;
    act();
    for (const view of views) view.mirrored = false;
    mirroring = false;
  };
  const align = (side) => {
    const other = views[1 - side];
    other.setWindow(moved(views[side].state.window, side));
  };
  const sum = () => fillMarked(views[0], views.map(({ state }, side) => (
    { label: labels[side], model: state.model, range: state.range })));
  const find = (query, side) => {
    views[1 - side].search(query);
    const [first, last] = views.map(({ parts }) => parts.found.textContent);
    views[0].parts.found.textContent = query.trim() ? `${labels[0]}: ${first}. ${labels[1]}: ${last}.` : "";
  };
  const acts = {
    window: (_, side) => align(side),
    range: (range, side) => views[1 - side].markSoon(moved(range, side)),
    kept: (kept, side) => views[1 - side].setKept(kept),
    search: find,
    node(name, side) {
      showMissing(views[1 - side], labels[1 - side], name, views[1 - side].selectNode(name));
      onNode(name);
    },
    // both go on by as many steps, and stand above each other again
    step(step, side) {
      const by = step - anchors[side];
      const other = views[1 - side].state;
      anchors[side] = step;
      anchors[1 - side] = Math.max(0, Math.min(other.model.steps - 1, anchors[1 - side] + by));
      other.step = anchors[1 - side];
    },
  };
  for (const flag of FLAGS) {
    acts[flag] = (on, side) => views[1 - side].state.flags[flag] !== on && views[1 - side].toggle(flag);
  }
  views.forEach((view, side) => {
    view.showMarked = sum;
    view.listen((kind, value) => {
      if (kind === "cursor") showCursor(views, value === null ? null : [value, side], there);
      else if (acts[kind]) mirror(() => acts[kind](value, side));
    });
  });
  root.append(views[0].parts.marked);
  joinTools(views);
  views[1].focusSearch = views[0].focusSearch;
  views[1].showKeys = views[0].showKeys;
  signal.addEventListener("abort", () => (mirroring = true));
  mirror(() => align(0));
  return {
    // the span of a node on both sides; what is selected already stays
    selectNode(name, options) {
      views.forEach((view, side) => {
        const { model, selected } = view.state;
        if (name && nodeOf(model, selected) === name) return;
        showMissing(view, labels[side], name, view.selectNode(name, options));
      });
    },
  };
}

// The tools of the first serve both: with the flags that only the second has lanes for.
function joinTools(views) {
  const [first, second] = views.map(({ parts }) => parts.tools);
  for (const one of second.querySelectorAll("[data-flag]")) {
    if (first.querySelector(`[data-flag="${one.dataset.flag}"]`)) continue;
    first.querySelector('[data-flag="table"]').before(one);
  }
}

function showCursor(views, at, there) {
  views.forEach((view, side) => {
    view.state.cursor = at && (at[1] === side ? at[0] : there(at[0], at[1]));
    view.invalidate("overlay");
  });
}

// An op of one side may have become another, or none.
function showMissing(view, label, name, known) {
  if (!name || known) return;
  view.parts.about.replaceChildren(
    element("span", { class: "wb-quiet" }, `${label} has no op of this name. The nodes below say what became of it.`),
  );
}

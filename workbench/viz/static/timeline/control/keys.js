// Keys of the focused timeline. A handled key goes no further; none works without focus.
const KEYS = {
  w: (view) => view.zoom(0.7),
  s: (view) => view.zoom(1 / 0.7),
  a: (view) => view.pan(-0.15),
  d: (view) => view.pan(0.15),
  ArrowLeft: (view) => view.pan(-0.15),
  ArrowRight: (view) => view.pan(0.15),
  0: (view) => view.showAll(),
  f: (view) => view.fit(),
  "[": (view) => view.moveStep(-1),
  "]": (view) => view.moveStep(1),
  "/": (view) => view.focusSearch(),
  c: (view) => view.pressPath(),
  ",": (view) => view.alongPath(-1),
  ".": (view) => view.alongPath(1),
  m: (view, { shiftKey }) => view.markSelected(shiftKey),
  z: (view) => view.zoomToMarked(),
  y: (view) => view.copyName(),
  "?": (view) => view.showKeys(),
  Enter: (view) => view.nextMatch(),
  Escape: (view) => view.clear(),
};

export const KEY_HINTS = [
  [["W", "S"], "zoom"],
  [["A", "D"], "pan"],
  [["[", "]"], "step"],
  [["M"], "mark"],
  [["/"], "search"],
  [["?"], "all keys"],
];
export const PATH_WORDS = " C lights the critical path, comma and full stop follow it.";
export const KEY_WORDS =
  "W and S zoom, A and D or the arrows pan, brackets change the step, F fits the selection, " +
  "0 shows all, M marks the selected op or the step and sums it, slash searches, " +
  "question mark lists all keys, Escape clears.";
export const ALL_KEYS = [
  [["W", "S"], "zoom in and out"],
  [["A", "D"], "move; the arrows do, too"],
  [["[", "]"], "the step before, the step after"],
  [["F"], "fit the selected op, or the step"],
  [["0"], "show the whole trace"],
  [["/"], "search ops; Enter goes to the next match"],
  [["M"], "mark the selected op, or the step, and sum it"],
  [["Shift", "M"], "mark from there to the selected op"],
  [["Z"], "zoom to what is marked"],
  [["Y"], "copy the name of the selected op"],
  [["Esc"], "clear the selection and the mark"],
  [["?"], "show and hide this list"],
];
export const PATH_KEYS = [
  [["C"], "light the critical path"],
  [[",", "."], "follow it, from op to op"],
];
export const POINTER_KEYS = [
  [["drag"], "mark a stretch: its length, and its sums below"],
  [["Alt", "drag"], "draw a box to zoom into; a drag along the ruler does, too"],
  [["Shift", "drag"], "move; a drag with the middle button does, too"],
  [["wheel"], "zoom, once the timeline was clicked; elsewhere with Ctrl"],
  [["double click"], "fit"],
  [["legend"], "show a family alone; a further click adds one"],
];

export function watchKeys(canvas, view, signal) {
  const listener = (event) => {
    view.hideCard();
    // brackets are typed with AltGr on some keyboards, which counts as Ctrl and Alt
    const typed = event.getModifierState("AltGraph");
    if (!typed && (event.ctrlKey || event.metaKey || event.altKey)) return;
    const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act(view, event);
  };
  canvas.addEventListener("keydown", listener, { signal });
}

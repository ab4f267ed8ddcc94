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
  Enter: (view) => view.nextMatch(),
  Escape: (view) => view.select(-1),
};

export const KEY_HINTS = [
  [["W", "S"], "zoom"],
  [["A", "D"], "pan"],
  [["[", "]"], "step"],
  [["F"], "fit"],
  [["0"], "all"],
  [["/"], "search"],
];
export const PATH_HINTS = [
  [["C"], "critical path"],
  [[",", "."], "along it"],
];
export const PATH_WORDS = " C lights the critical path, comma and full stop follow it.";
export const KEY_WORDS =
  "W and S zoom, A and D or the arrows pan, brackets change the step, F fits the selection, " +
  "0 shows all, slash searches, Enter goes to the next match, Escape clears.";

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
    act(view);
  };
  canvas.addEventListener("keydown", listener, { signal });
}

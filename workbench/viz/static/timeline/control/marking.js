// What a user marks in a timeline: a stretch that is summed, and the families that the legend keeps.
import { CLASSES } from "../draw/decode.js";
import { fitWindow } from "../draw/scales.js";
import { fillMarked } from "./marked.js";

const SUM_DELAY = 60; // ms without a change of the stretch before it is summed while it is drawn

// Adds to a view what marks. Its listeners hear "range" and "kept".
export function addMarking(view, signal) {
  const s = view.state;
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));

  const sum = () => {
    if (!signal.aborted && !s.model.pending) view.showMarked();
  };
  Object.assign(view, {
    // [from, to] in ns, null for none; the sums follow once it rests
    markSoon(range, delay = SUM_DELAY) {
      s.range = range && range[1] > range[0] ? range : null;
      view.invalidate("overlay");
      view.tell("range", s.range);
      clearTimeout(timer);
      timer = setTimeout(sum, delay);
    },
    mark(range) {
      view.markSoon(range, 0);
    },
    // The selected span, else the step; `further` from what is marked to there.
    markSelected(further) {
      const there = selectedStretch(s);
      if (!there) return;
      const [from, to] = further && s.range ? s.range : there;
      view.mark([Math.min(from, there[0]), Math.max(to, there[1])]);
    },
    showMarked() {
      fillMarked(view, [{ label: "", model: s.model, range: s.range }]);
    },
    drawBox(range) {
      s.box = range;
      view.invalidate("overlay");
    },
    zoomTo([from, to]) {
      if (to > from) view.setWindow(fitWindow(from, to, 0.01, s.model.duration));
    },
    zoomToMarked() {
      if (s.range) view.zoomTo(s.range);
    },
    clear() {
      view.select(-1);
      if (s.range) view.mark(null);
    },
    // Keeps a family beside those that are kept, or lets it go; without any, all are shown.
    keepFamily(family) {
      const kept = s.kept ? s.kept.slice() : new Uint8Array(CLASSES);
      kept[family] = kept[family] ? 0 : 1;
      view.setKept(kept.some(Boolean) ? kept : null);
    },
    setKept(kept) {
      s.kept = kept;
      view.invalidate();
      view.later();
      if (s.range) view.mark(s.range);
      view.tell("kept", kept);
    },
  });
}

function selectedStretch({ model, selected, step }) {
  if (selected >= 0) return [model.start[selected], model.start[selected] + model.dur[selected]];
  return step >= 0 ? [model.stepStart[step], model.stepEnd[step]] : null;
}

// The state of one timeline, and what changes it. Drawing happens at most once a frame.
import { layoutLanes } from "../draw/layout.js";
import { GUTTER, fitWindow, placeWindow } from "../draw/scales.js";

const CONTEXT_STEPS = 1;

function firstWindow(model) {
  const k = model.steps >> 1;
  if (model.shown) {
    const middle = model.steps ? (model.stepStart[k] + model.stepEnd[k]) / 2 : model.duration / 2;
    return fitWindow(middle - model.shown / 2, middle + model.shown / 2, 0.04, model.duration);
  }
  if (model.steps < 4) return fitWindow(0, model.duration, 0.02, model.duration);
  const low = model.stepStart[k - CONTEXT_STEPS];
  return fitWindow(low, model.stepEnd[k + CONTEXT_STEPS], 0.04, model.duration);
}

const OPENING_FLAGS = { flows: true, gaps: true, table: false, path: false };

export function newState(model, theme, flags = { ...OPENING_FLAGS }) {
  return {
    model,
    theme,
    layout: layoutLanes(model.lanes, flags.path),
    window: firstWindow(model),
    width: 0,
    ratio: 1,
    scale: 1,
    step: model.steps ? model.steps >> 1 : -1,
    selected: -1,
    hovered: -1,
    query: "",
    matches: null,
    // 1 for each family that the legend keeps; null for all
    kept: null,
    // [from, to] in ns: the stretch that is marked, and the box that is being drawn
    range: null,
    box: null,
    // the moment under the pointer, where timelines share a cursor
    cursor: null,
    flags,
    x(t) {
      return GUTTER + (t - this.window[0]) * this.scale;
    },
  };
}

export function resizeState(s, width, ratio) {
  s.width = width;
  s.ratio = ratio;
  rescale(s);
}

export function rescale(s) {
  s.scale = Math.max(1, s.width - GUTTER) / (s.window[1] - s.window[0]);
}

// the window that shows a span, moved no more than needed
export function windowOn(s, i) {
  const [from, to] = s.window;
  const { start, dur, duration: total } = s.model;
  const end = start[i] + dur[i];
  if (start[i] >= from && end <= to) return s.window;
  return placeWindow(start[i] - (to - from) * 0.4, to - from, total);
}

export function windowOnStep(s, k) {
  const [from, to] = s.window;
  const { stepStart, stepEnd } = s.model;
  if (stepStart[k] >= from && stepEnd[k] <= to) return s.window;
  const middle = (stepStart[k] + stepEnd[k]) / 2;
  return placeWindow(middle - (to - from) / 2, to - from, s.model.duration);
}

// What lies under a point of the canvas.
import { rowAt } from "../draw/layout.js";
import { SINGLE_MIN, firstEnding } from "../draw/lod.js";
import { GUTTER, bisect } from "../draw/scales.js";

const REACH = 1.5; // px
const LOOKED_AT = 20000;
const SNAP = 5; // px

export function pickAt(s, px, py) {
  const row = rowAt(s.layout, py);
  if (!row || px < GUTTER || s.model.pending) return null;
  const t = s.window[0] + (px - GUTTER) / s.scale;
  if (row.lane.kind === "buffer") return pickBuffer(s, row, t);
  return pickSpan(s, row, t) || pickGap(s, row, t);
}

function pickBuffer({ model }, row, t) {
  const { lane } = row;
  if (t < 0 || t > model.duration) return null;
  const k = bisect(lane.first, lane.first + lane.count, (i) => model.occTime[i] > t);
  return { kind: "buffer", row, held: k > lane.first ? model.occCount[k - 1] : lane.held };
}

// the longest span within reach of the pointer, and how many others are
function pickSpan({ model, scale }, row, t) {
  const { start, dur } = model;
  const reach = REACH / scale;
  const last = row.lane.first + row.lane.count;
  const first = firstEnding(model, row.lane, t - reach);
  let best = -1;
  let near = 0;
  for (let i = first; i < last && i < first + LOOKED_AT && start[i] <= t + reach; i++) {
    near++;
    const inside = start[i] <= t && start[i] + dur[i] >= t && dur[i] * scale >= SINGLE_MIN;
    if (inside) return { kind: "span", row, i, others: 0 };
    if (best < 0 || dur[i] > dur[best]) best = i;
  }
  return best < 0 ? null : { kind: "span", row, i: best, others: near - 1 };
}

function pickGap({ model }, row, t) {
  const { start, dur, gap } = model;
  const next = firstEnding(model, row.lane, t);
  if (next >= row.lane.first + row.lane.count || next === row.lane.first || !gap[next]) return null;
  const begin = start[next - 1] + dur[next - 1];
  return { kind: "gap", row, name: model.header.gapNames[gap[next]], dur: start[next] - begin };
}

export function stepAt({ model }, t) {
  const k = bisect(0, model.steps, (i) => model.stepEnd[i] >= t);
  return k < model.steps && model.stepStart[k] <= t ? k : -1;
}

// The moment at a point; where the start or end of a span of its lane, or of a step, is near, that.
export function momentNear(s, px, py) {
  const { model } = s;
  const t = s.window[0] + (px - GUTTER) / s.scale;
  let near = SNAP / s.scale;
  const [low, high] = [t - near, t + near];
  let best = t;
  const offer = (at) => {
    if (Math.abs(at - t) >= near) return;
    [best, near] = [at, Math.abs(at - t)];
  };
  const lane = rowAt(s.layout, py)?.lane;
  if (lane && lane.kind !== "buffer" && !model.pending) {
    const last = Math.min(lane.first + lane.count, firstEnding(model, lane, low) + LOOKED_AT);
    for (let i = firstEnding(model, lane, low); i < last && model.start[i] <= high; i++) {
      offer(model.start[i]);
      offer(model.start[i] + model.dur[i]);
    }
  }
  for (let k = bisect(0, model.steps, (i) => model.stepEnd[i] >= low); k < model.steps && model.stepStart[k] <= high; k++) {
    offer(model.stepStart[k]);
    offer(model.stepEnd[k]);
  }
  return best;
}

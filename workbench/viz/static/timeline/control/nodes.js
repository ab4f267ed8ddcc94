// Spans by the graph node that they are of. Waits, puts, runs and the critical path's lane are of none.
import { laneOf } from "../draw/decode.js";

export function nodeOf(model, i) {
  if (i < 0 || model.name[i] >= model.header.nodeNames) return "";
  return model.names[model.name[i]];
}

// The span of a node in a step, the longest of several; else the one that is nearest to the step.
//   k: place of the step, -1 for none: then the nearest to `t`. Returns -1 where there is no span.
export function spanOfNode(model, name, k, t) {
  const known = new Set();
  for (let n = 0; n < model.header.nodeNames; n++) if (model.names[n] === name) known.add(n);
  const { start, dur, stepStart, stepEnd } = model;
  const from = k < 0 ? t : stepStart[k];
  const to = k < 0 ? t : stepEnd[k];
  let best = -1;
  let far = Infinity;
  for (let i = 0; known.size && i < model.name.length; i++) {
    if (!known.has(model.name[i])) continue;
    // of a stage the span is made for the step, mostly before it
    const off = inStep(model, i, k) ? -1 : Math.max(0, start[i] - to, from - start[i] - dur[i]);
    if (off > far || (off === far && dur[i] <= dur[best])) continue;
    [best, far] = [i, off];
  }
  return best;
}

function inStep(model, i, k) {
  if (k < 0) return false;
  const lane = model.lanes[laneOf(model, i)];
  if (lane.kind !== "prefetch") return model.step[i] === model.stepNumber[k];
  const flow = model.flowOfRun.get(`${lane.track}:${model.step[i]}`);
  return flow !== undefined && model.flowStep[flow] === model.stepNumber[k];
}

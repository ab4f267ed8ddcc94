// Sums of the spans in a stretch of time. TimelineView.in_view and steps_in compute the same.
import { CLASSES, RUN } from "../draw/decode.js";
import { firstEnding } from "../draw/lod.js";
import { bisect } from "../draw/scales.js";

// time, number and longest of the spans of every name that reach into a stretch
function byName(model, [from, to]) {
  const { start, dur, name, nameFamily, lanes } = model;
  const spans = new Uint32Array(nameFamily.length);
  const total = new Float64Array(nameFamily.length);
  const longest = new Float64Array(nameFamily.length);
  for (const lane of lanes) {
    if (lane.kind === "buffer") continue;
    const last = Math.min(lane.first + lane.count, name.length);
    for (let i = firstEnding(model, lane, from); i < last && start[i] <= to; i++) {
      const end = start[i] + dur[i];
      const of = name[i];
      spans[of]++;
      total[of] += (end < to ? end : to) - (start[i] > from ? start[i] : from);
      if (dur[i] > longest[of]) longest[of] = dur[i];
    }
  }
  return { spans, total, longest };
}

// What a stretch holds by op type and family, the longest total first; runs of steps and the lane of
// the critical path are left out.
//   kept: 1 for each family that counts; null for all.
export function inView(model, range, kept = null) {
  const { nameOp, nameFamily, ops, pathNames } = model;
  const { spans, total, longest } = byName(model, range);
  const groups = new Map();
  for (let k = 0; k < Math.min(pathNames, spans.length); k++) {
    const family = nameFamily[k];
    if (!spans[k] || family === RUN || (kept && !kept[family])) continue;
    const key = nameOp[k] * CLASSES + family;
    const row = groups.get(key) || { op: ops[nameOp[k]], family, spans: 0, total: 0, longest: 0 };
    row.spans += spans[k];
    row.total += total[k];
    row.longest = Math.max(row.longest, longest[k]);
    groups.set(key, row);
  }
  return [...groups.values()].sort((a, b) => b.total - a.total || (a.op < b.op ? -1 : 1));
}

// How many steps a stretch holds, each by the part of it that is inside.
function stepsIn(model, [from, to]) {
  const { stepStart, stepEnd, steps } = model;
  let inside = 0;
  for (let k = bisect(0, steps, (i) => stepEnd[i] >= from); k < steps && stepStart[k] <= to; k++) {
    const time = Math.min(stepEnd[k], to) - Math.max(stepStart[k], from);
    inside += stepEnd[k] > stepStart[k] ? Math.max(0, time) / (stepEnd[k] - stepStart[k]) : 0;
  }
  return inside;
}

// Sums of stretches beside each other by family, and in it by op type.
//   sides: [{ model, range }]. Returns the steps of each side, whether times are those of a step,
//   the time of each side in all, and rows of a family or one of its op types, the longest first.
export function sumsOf(sides, kept = null) {
  const steps = sides.map(({ model, range }) => stepsIn(model, range));
  // less than a step says nothing of a whole one
  const aStep = steps.every((count) => count > 0.999);
  const families = new Map();
  const add = (row, side, { total, spans }) => {
    row.times[side] += total / (aStep ? steps[side] : 1);
    row.spans[side] += spans;
  };
  const blank = () => ({ times: sides.map(() => 0), spans: sides.map(() => 0) });
  sides.forEach(({ model, range }, side) => {
    for (const row of inView(model, range, kept)) {
      const of = families.get(row.family) || { family: row.family, ...blank(), ops: new Map() };
      const op = of.ops.get(row.op) || { op: row.op, ...blank() };
      add(of, side, row);
      add(op, side, row);
      of.ops.set(row.op, op);
      families.set(row.family, of);
    }
  });
  const most = ({ times }) => Math.max(...times);
  const sorted = (rows) => [...rows.values()].sort((a, b) => most(b) - most(a));
  const parts = sorted(families).map((part) => ({ ...part, ops: sorted(part.ops) }));
  return { steps, aStep, parts };
}

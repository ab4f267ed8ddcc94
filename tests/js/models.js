// Models to draw: what Python packed, and random lanes of spans that do not overlap.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { BOX_H, BOX_W, COLUMN_GAP, FLOW_MARGIN, ROW_GAP } from "static/boundary/cut.js";
import { fromBase64 } from "static/shared/unpack.js";
import { newState, resizeState } from "static/timeline/control/state.js";
import { CLASSES, decode } from "static/timeline/draw/decode.js";

const file = new URL("../../build/vitest/views.json", import.meta.url);
export const views = JSON.parse(readFileSync(file, "utf-8"));

export function packed(name) {
  const { header, blob } = views.timelines[name];
  return { header, bytes: fromBase64(blob) };
}

export function modelOf(name) {
  const { header, bytes } = packed(name);
  return decode(header, bytes);
}

const NAMES = ["in/read", "ids/hash", "emb/Lookup", "net/MatMul"];

// one lane of spans, [idle before it, duration, family, name] each, times in ns
export function laneModel(spans) {
  const model = { lanes: [{ kind: "inter_op", group: "ops", first: 0, count: spans.length }] };
  const kinds = { start: Float64Array, dur: Float64Array, family: Uint8Array, name: Uint8Array };
  for (const [column, type] of Object.entries(kinds)) model[column] = new type(spans.length);
  let at = 0;
  spans.forEach(([idle, dur, family, name], i) => {
    at += idle;
    model.start[i] = at;
    model.dur[i] = dur;
    model.family[i] = family;
    model.name[i] = name;
    at += dur;
  });
  return {
    ...model,
    gap: new Uint8Array(spans.length),
    names: NAMES,
    nameFamily: new Uint8Array(NAMES.length),
    pathNames: NAMES.length,
    header: { gapNames: [""] },
    duration: Math.max(at, 1),
    shown: 0,
    steps: 0,
    pending: false,
  };
}

const span = fc.tuple(
  fc.oneof(fc.nat(30), fc.nat(20_000)),
  fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 30_000 })),
  fc.nat(CLASSES - 3),
  fc.nat(NAMES.length - 1),
);

export const anyLane = fc.array(span, { minLength: 1, maxLength: 60 }).map(laneModel);

// part of a model, as [from, to] in ns
export const anyWindow = (model) =>
  fc
    .tuple(fc.double({ min: -0.02, max: 1, noNaN: true }), fc.double({ min: 1e-3, max: 1, noNaN: true }))
    .map(([from, part]) => [from * model.duration, (from + part) * model.duration]);

export const laneAndWindow = anyLane.chain((model) => fc.tuple(fc.constant(model), anyWindow(model)));

// A drawing of one box for each leaf, in columns by what a leaf needs, and of a box that stays at
// the right of each leaf that nothing needs; `wants[k]` picks what leaf k needs.
export function flowOf(wants) {
  const leaves = [];
  wants.forEach((picks, k) => {
    const needs = k ? [...new Set(picks.map((pick) => pick % k))] : [];
    const column = needs.reduce((most, need) => Math.max(most, leaves[need].column + 1), 0);
    leaves.push({ box: k, nodes: 1, needs, column, begins: [[needs, [`n${k}`]]] });
  });
  const readers = leaves.map((_, k) => leaves.flatMap((leaf, by) => (leaf.needs.includes(k) ? [by] : [])));
  const last = leaves.filter((_, k) => !readers[k].length);
  const taken = new Map();
  const boxAt = (box, column, own, state) => {
    const row = taken.get(column) || 0;
    taken.set(column, row + 1);
    const [x, y] = [FLOW_MARGIN + column * (BOX_W + COLUMN_GAP), FLOW_MARGIN + row * (BOX_H + ROW_GAP)];
    return { box, column, x, y, state, leaves: own };
  };
  const boxes = leaves.map((leaf, k) => boxAt(k, leaf.column, [k], "move"));
  const ends = new Map(last.map((leaf, k) => [leaf.box, leaves.length + k]));
  for (const leaf of last) boxes.push(boxAt(boxes.length, leaf.column + 1, [], "stay"));
  leaves.forEach((leaf, k) => (leaf.ends = [[readers[k], [`n${k}`]]]));
  return {
    width: Math.max(...boxes.map(({ x }) => x + BOX_W)) + FLOW_MARGIN,
    height: Math.max(...boxes.map(({ y }) => y + BOX_H)) + FLOW_MARGIN,
    boxes,
    links: [],
    leaves,
    makers: leaves.map((_, k) => ({
      leaf: k,
      count: 1,
      always: false,
      outputs: [[[...readers[k], ...(ends.has(k) ? [-1 - ends.get(k)] : [])], 8]],
    })),
    cuts: [{ leaves: [] }, { leaves: [...leaves.keys()] }],
    smart: 1,
    named: true,
  };
}

export const anyFlow = fc
  .array(fc.array(fc.nat(), { maxLength: 3 }), { minLength: 1, maxLength: 14 })
  .map(flowOf);

const INKS = { bg: "bg", up: "up", ink: "ink", ink2: "ink2", line: "line", line2: "line2", acc: "accent" };

// a theme whose colors are words, with every pattern painted
export function namedTheme(model) {
  const families = (model.header.families || []).map(([, code]) => code);
  const patterns = new Map(families.map((code, family) => [family, `${code} pattern`]));
  patterns.set("hatch", "hatch");
  return {
    ...INKS,
    font: "sans",
    widths: new Map(),
    patterns,
    fill: families,
    mark: families,
    text: families.map((code) => `on ${code}`),
    kinds: (model.header.families || []).map(([, , kind]) => kind),
    forced: false,
  };
}

export function stateOf(model, width = 904, window = null) {
  const s = newState(model, namedTheme(model));
  if (window) s.window = window;
  resizeState(s, width, 1);
  s.theme.stripKey = `${width - 104}:1:${model.pending}`;
  s.theme.strip = "strip";
  return s;
}

import fc from "fast-check";
import { pickAt, stepAt } from "static/timeline/control/pick.js";
import { mergeLane, newColumns } from "static/timeline/draw/lod.js";
import { GUTTER } from "static/timeline/draw/scales.js";
import { describe, expect, test } from "vitest";
import { laneAndWindow, laneModel, modelOf, stateOf } from "./models.js";

const WIDTH = 404;
const drawnIn = (s, row) =>
  mergeLane(s.model, row.lane, s.window, newColumns(WIDTH - GUTTER), null, Infinity);

describe("what is picked", () => {
  test("is the span that is drawn by itself there", () => {
    fc.assert(
      fc.property(laneAndWindow, ([model, window]) => {
        const s = stateOf(model, WIDTH, window);
        const [row] = s.layout.rows;
        for (const i of drawnIn(s, row).singles) {
          const left = Math.max(GUTTER, s.x(model.start[i]));
          const right = Math.min(WIDTH, s.x(model.start[i] + model.dur[i]));
          // One of which less than a pixel is in view may share it with its neighbor.
          if (right - left < 1) continue;
          const found = pickAt(s, (left + right) / 2, row.y + 1);
          expect(found).toMatchObject({ kind: "span", i, others: 0 });
        }
      }),
      { numRuns: 60 },
    );
  });

  test("in a merged column is the longest span within reach", () => {
    fc.assert(
      fc.property(laneAndWindow, ([model, window]) => {
        const s = stateOf(model, WIDTH, window);
        const [row] = s.layout.rows;
        const { cover, pixels } = drawnIn(s, row);
        const perPixel = cover.length / pixels;
        for (let p = 0; p < pixels; p++) {
          if (!cover.subarray(p * perPixel, (p + 1) * perPixel).some((share) => share > 1e-6)) continue;
          const px = GUTTER + p + 0.5;
          const found = pickAt(s, px, row.y + 1);
          expect(found.kind).toBe("span");
          const [begin, end] = [s.x(model.start[found.i]), s.x(model.start[found.i] + model.dur[found.i])];
          expect(begin).toBeLessThanOrEqual(px + 1.5 + 1e-6);
          expect(end).toBeGreaterThanOrEqual(px - 1.5 - 1e-6);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("beside the lanes is nothing", () => {
    const s = stateOf(modelOf("staged"));
    const [row] = s.layout.rows;
    expect(pickAt(s, GUTTER - 1, row.y + 1)).toBe(null);
    expect(pickAt(s, GUTTER + 50, 2)).toBe(null);
    expect(pickAt(s, GUTTER + 50, s.layout.height + 20)).toBe(null);
  });

  test("before the data is there is nothing", () => {
    const s = stateOf({ ...laneModel([[0, 100, 0, 0]]), pending: true });
    expect(pickAt(s, GUTTER + 50, s.layout.rows[0].y + 1)).toBe(null);
  });

  test("between spans is the gap with its name and length", () => {
    const model = laneModel([[0, 100, 0, 0], [300, 100, 0, 0]]);
    model.gap[1] = 1;
    model.header.gapNames = ["", "dispatch"];
    const s = stateOf(model, WIDTH, [0, 500]);
    const found = pickAt(s, s.x(250), s.layout.rows[0].y + 1);
    expect(found).toMatchObject({ kind: "gap", name: "dispatch", dur: 300 });
  });

  test("in a buffer is how many items it holds then", () => {
    const model = modelOf("by hand");
    const s = stateOf(model, 904, [0, model.duration]);
    const row = s.layout.rows.find(({ lane }) => lane.kind === "buffer");
    const held = (ms) => pickAt(s, s.x(ms * 1e6), row.y + 1).held;
    // Put ends and take ends at the same 5 ms, so the item never rests in the buffer.
    expect([held(1), held(10)]).toEqual([0, 0]);
    expect(pickAt(s, s.x(-1e5), row.y + 1)).toBe(null);
  });
});

test("the step at a moment is the one that runs then", () => {
  const model = modelOf("staged");
  for (const k of Array(model.steps).keys()) {
    const [start, end] = [model.stepStart[k], model.stepEnd[k]];
    expect(stepAt({ model }, (start + end) / 2)).toBe(k);
  }
  expect(stepAt({ model }, model.stepEnd[model.steps - 1] + 1)).toBe(-1);
});

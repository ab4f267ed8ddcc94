import fc from "fast-check";
import { CLASSES } from "static/timeline/draw/decode.js";
import { SINGLE_MIN, columnAt, mergeLane, newColumns } from "static/timeline/draw/lod.js";
import { describe, expect, test } from "vitest";
import { laneAndWindow, laneModel } from "./models.js";

const pixelCount = fc.integer({ min: 4, max: 300 });

function merged(model, window, pixels, matches = null, critical = null) {
  return mergeLane(model, model.lanes[0], window, newColumns(pixels), matches, Infinity, critical);
}

// how much of a pixel each span covers, without any merging
function coverOf(model, [from, to], pixels, i, p) {
  const scale = pixels / (to - from);
  const left = Math.max(p, (model.start[i] - from) * scale);
  const right = Math.min(p + 1, (model.start[i] + model.dur[i] - from) * scale);
  return Math.max(0, right - left);
}

const spansOf = (model) => [...model.start.keys()];
const isSingle = (model, [from, to], pixels, i) => model.dur[i] * (pixels / (to - from)) >= SINGLE_MIN;

describe("merged columns and single spans", () => {
  test("lose nothing of a lane's total", () => {
    fc.assert(
      fc.property(laneAndWindow, pixelCount, ([model, window], pixels) => {
        const found = merged(model, window, pixels);
        let wanted = 0;
        let shown = found.cover.reduce((sum, one) => sum + one, 0);
        for (let p = 0; p < pixels; p++) {
          for (const i of spansOf(model)) wanted += coverOf(model, window, pixels, i, p);
          for (const i of found.singles) shown += coverOf(model, window, pixels, i, p);
        }
        expect(shown).toBeCloseTo(wanted, 6);
      }),
      { numRuns: 60 },
    );
  });

  test("keep the maximum: no pixel is lower than the spans that are merged there", () => {
    fc.assert(
      fc.property(laneAndWindow, pixelCount, ([model, window], pixels) => {
        const found = merged(model, window, pixels);
        const small = spansOf(model).filter((i) => !isSingle(model, window, pixels, i));
        for (let p = 0; p < pixels; p++) {
          const covered = small.reduce((sum, i) => sum + coverOf(model, window, pixels, i, p), 0);
          expect(columnAt(found, p).share).toBeCloseTo(Math.min(1, covered), 6);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("take the family with most time in the pixel", () => {
    const model = laneModel([[0, 2, 1, 0], [0, 5, 4, 0], [0, 3, 1, 0]]);
    // 2 + 3 of family 1 and 5 of family 4 on a pixel of 20 ns: the first of equals.
    expect(columnAt(merged(model, [0, 200], 10), 0)).toMatchObject({ family: 1, share: 0.5 });
    expect(columnAt(merged(model, [0, 200], 10), 1)).toMatchObject({ family: -1, share: 0 });
  });

  test("show every span that is in view, and single ones once", () => {
    fc.assert(
      fc.property(laneAndWindow, pixelCount, ([model, window], pixels) => {
        const { singles, cover } = merged(model, window, pixels);
        expect(new Set(singles).size).toBe(singles.length);
        for (const i of spansOf(model)) {
          const [begin, end] = [model.start[i], model.start[i] + model.dur[i]];
          if (end <= window[0] || begin >= window[1]) continue;
          if (isSingle(model, window, pixels, i)) expect(singles).toContain(i);
          else {
            const at = Math.floor(((Math.max(begin, window[0]) - window[0]) * pixels) / (window[1] - window[0]));
            const near = [at, at + 1].filter((p) => p < pixels);
            expect(near.some((p) => cover[p * CLASSES + model.family[i]] > 0)).toBe(true);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test("a column is a match, or on the path, if any of its spans is", () => {
    fc.assert(
      fc.property(laneAndWindow, pixelCount, fc.nat(3), ([model, window], pixels, wanted) => {
        const matches = new Uint8Array(model.names.length);
        matches[wanted] = 1;
        const critical = model.name.map((name) => (name === wanted ? 1 : 0));
        const { hit, path, cover } = merged(model, window, pixels, matches, critical);
        expect([...hit]).toEqual([...path]);
        const small = spansOf(model).filter((i) => !isSingle(model, window, pixels, i));
        for (let p = 0; p < pixels; p++) {
          const covering = small.filter((i) => coverOf(model, window, pixels, i, p) > 1e-9);
          if (covering.some((i) => model.name[i] === wanted)) expect(hit[p]).toBe(1);
          const touched = cover.subarray(p * CLASSES, (p + 1) * CLASSES).some((share) => share > 0);
          if (!touched) expect(covering).toEqual([]);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("zooming in ends in single spans", () => {
    const model = laneModel([[10, 1, 0, 0], [0, 2, 1, 1], [500, 1, 2, 2]]);
    const { singles, cover } = merged(model, [9, 15], 300);
    expect(singles).toEqual([0, 1]);
    expect(cover.every((share) => share === 0)).toBe(true);
  });

  test("a gap is told before the span that ends it", () => {
    const model = laneModel([[0, 100, 0, 0], [400, 100, 0, 0], [10, 100, 0, 0]]);
    model.gap.fill(1);
    const { gaps } = mergeLane(model, model.lanes[0], [0, 1000], newColumns(100), null, 30);
    expect(gaps).toEqual([1]);
  });
});

import fc from "fast-check";
import {
  bisect,
  fitWindow,
  panWindow,
  placeWindow,
  rulerTicks,
  zoomWindow,
} from "static/timeline/draw/scales.js";
import { describe, expect, test } from "vitest";

const total = fc.integer({ min: 10_000, max: 10 ** 12 });
const part = fc.double({ min: 0, max: 1, noNaN: true });
const inside = (all, [from, to]) => {
  expect(from).toBeGreaterThanOrEqual(-0.02 * all - 1e-3);
  expect(to).toBeLessThanOrEqual(1.02 * all + 1e-3);
  expect(to).toBeGreaterThan(from);
};
const windowOf = (all, low, wide) => placeWindow(low * all, Math.max(2000, wide * all), all);

describe("the window", () => {
  test("zoom keeps the moment under the pointer where it is", () => {
    const factor = fc.double({ min: 0.05, max: 20, noNaN: true });
    fc.assert(
      fc.property(total, part, part, part, factor, (all, low, wide, at, by) => {
        const before = windowOf(all, low, wide);
        const moment = before[0] + at * (before[1] - before[0]);
        const after = zoomWindow(before, by, moment, all);
        inside(all, after);
        // Where the edge of the trace stops it, the window may only slide.
        const atEdge = after[0] <= -0.02 * all + 1 || after[1] >= 1.02 * all - 1;
        if (!atEdge) expect((moment - after[0]) / (after[1] - after[0])).toBeCloseTo(at, 6);
      }),
    );
  });

  test("zooming in and out again comes back", () => {
    const before = [40_000, 60_000];
    const after = zoomWindow(zoomWindow(before, 0.5, 47_000, 100_000), 2, 47_000, 100_000);
    expect(after[0]).toBeCloseTo(40_000, 6);
    expect(after[1]).toBeCloseTo(60_000, 6);
  });

  test("no zoom shows less than a microsecond", () => {
    const [from, to] = zoomWindow([5000, 9000], 1e-9, 6000, 100_000);
    expect(to - from).toBe(1000);
  });

  test("a pan keeps the width and stays inside", () => {
    fc.assert(
      fc.property(total, part, part, fc.double({ min: -3, max: 3, noNaN: true }), (all, low, wide, by) => {
        const before = windowOf(all, low, wide);
        const after = panWindow(before, by, all);
        inside(all, after);
        expect(after[1] - after[0]).toBeCloseTo(before[1] - before[0], 2);
      }),
    );
  });

  test("what is fitted is in view", () => {
    fc.assert(
      fc.property(total, part, part, (all, one, other) => {
        const [start, end] = [one * all, other * all].sort((a, b) => a - b);
        const [from, to] = fitWindow(start, end, 0.04, all);
        inside(all, [from, to]);
        expect(from).toBeLessThanOrEqual(start + 1e-3);
        expect(to).toBeGreaterThanOrEqual(end - 1e-3);
      }),
    );
  });
});

describe("the ruler", () => {
  test("its ticks are apart, in view, and at moments that their labels name", () => {
    fc.assert(
      fc.property(total, part, part, fc.integer({ min: 100, max: 2000 }), (all, low, wide, pixels) => {
        const [from, to] = windowOf(all, low, wide);
        const { unit, ticks } = rulerTicks([from, to], pixels);
        const per = { s: 1e9, ms: 1e6 }[unit];
        ticks.forEach(({ t, label }, k) => {
          expect(t).toBeGreaterThanOrEqual(0);
          expect(t).toBeLessThanOrEqual(to);
          expect(Number(label.replaceAll("\u2009", "")) * per).toBeCloseTo(t, 3);
          if (k) expect(((t - ticks[k - 1].t) / (to - from)) * pixels).toBeGreaterThanOrEqual(90 - 1e-6);
        });
      }),
    );
  });
});

test("bisect finds where a test turns true", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(50)), fc.nat(60), (values, wanted) => {
      const sorted = values.sort((a, b) => a - b);
      const found = bisect(0, sorted.length, (i) => sorted[i] >= wanted);
      expect(sorted.filter((value) => value < wanted).length).toBe(found);
    }),
  );
});

import fc from "fast-check";
import { LANES_TOP, layoutLanes, rowAt } from "static/timeline/draw/layout.js";
import { describe, expect, test } from "vitest";
import { modelOf, views } from "./models.js";

const lane = fc.record({
  kind: fc.constantFrom("step", "critical", "prefetch", "buffer", "inter_op"),
  group: fc.constantFrom("main", "stage", "ops"),
});
const lanes = fc.array(lane, { maxLength: 12 });

describe("lanes", () => {
  test("do not overlap, and stand inside the canvas", () => {
    fc.assert(
      fc.property(lanes, fc.boolean(), (some, path) => {
        const { rows, height } = layoutLanes(some, path);
        let free = LANES_TOP;
        for (const row of rows) {
          expect(row.y).toBeGreaterThanOrEqual(free);
          free = row.y + row.height;
        }
        expect(height).toBeGreaterThanOrEqual(free);
      }),
    );
  });

  test("all have a row, but the path's where it is not asked for", () => {
    fc.assert(
      fc.property(lanes, fc.boolean(), (some, path) => {
        const { rows, of } = layoutLanes(some, path);
        const shown = some.filter(({ kind }) => path || kind !== "critical");
        expect(rows.map((row) => row.lane)).toEqual(shown);
        some.forEach((one, k) => expect(of[k]?.lane).toBe(shown.includes(one) ? one : undefined));
      }),
    );
  });

  test("a hairline ends a group and crosses no lane", () => {
    fc.assert(
      fc.property(lanes, (some) => {
        const { rows, lines } = layoutLanes(some);
        const ends = rows.filter((row, k) => k && row.lane.group !== rows[k - 1].lane.group).length;
        expect(lines.length).toBe(ends);
        for (const y of lines) {
          expect(rows.some((row) => y >= row.y && y < row.y + row.height)).toBe(false);
        }
      }),
    );
  });

  test("the row under a point is the one that is drawn there", () => {
    fc.assert(
      fc.property(lanes, fc.double({ min: 0, max: 1, noNaN: true }), (some, at) => {
        const layout = layoutLanes(some);
        for (const row of layout.rows) expect(rowAt(layout, row.y + at * row.height)).toBe(row);
        expect(rowAt(layout, LANES_TOP - 10)).toBe(null);
        expect(rowAt(layout, layout.height + 10)).toBe(null);
      }),
    );
  });

  test.each(Object.keys(views.timelines))("of a packed view have rows: %s", (name) => {
    const model = modelOf(name);
    expect(layoutLanes(model.lanes).rows.length).toBe(model.lanes.length);
  });
});

import fc from "fast-check";
import {
  BOX_H,
  BOX_W,
  PILL_GAP,
  byteWords,
  crossing,
  cutCode,
  cutKey,
  differences,
  lineAt,
  linePoints,
  pillsOf,
  shareAhead,
  takeEdit,
  withNeeds,
  withoutLeaves,
} from "static/boundary/cut.js";
import { linkPath } from "static/boundary/flow.js";
import { describe, expect, test } from "vitest";
import { anyFlow, flowOf, views } from "./models.js";

const flows = views.boundaries.map(({ flow }) => flow);
const flow = fc.oneof(fc.constantFrom(...flows), anyFlow);
const some = fc.array(fc.nat(), { maxLength: 8 });
const leavesOf = (one, numbers) => numbers.map((number) => number % one.leaves.length);
const isLegal = (one, ahead) =>
  [...ahead].every((leaf) => one.leaves[leaf].needs.every((need) => ahead.has(need)));
const legalCut = flow.chain((one) =>
  some.map((numbers) => [one, withNeeds(one, leavesOf(one, numbers))]),
);

describe("a cut", () => {
  test("has all that its leaves need", () => {
    fc.assert(
      fc.property(legalCut, ([one, ahead]) => {
        expect(isLegal(one, ahead)).toBe(true);
      }),
    );
  });

  test("stays legal when leaves are taken out", () => {
    fc.assert(
      fc.property(legalCut, some, ([one, ahead], numbers) => {
        const removed = leavesOf(one, numbers);
        const left = withoutLeaves(one, ahead, removed);
        expect(isLegal(one, left)).toBe(true);
        expect([...left].every((leaf) => ahead.has(leaf))).toBe(true);
        expect(removed.some((leaf) => left.has(leaf))).toBe(false);
        // No more goes than has to: what is gone needs something that was removed.
        const gone = [...ahead].filter((leaf) => !left.has(leaf));
        for (const leaf of gone) {
          expect(removed.some((each) => withNeeds(one, [leaf]).has(each))).toBe(true);
        }
      }),
    );
  });

  test("comes to SmartStage's by its edits, in any order, and every step is legal", () => {
    fc.assert(
      fc.property(legalCut, fc.infiniteStream(fc.nat()), ([one, first], picks) => {
        if (one.smart < 0) return;
        let ahead = first;
        for (let rounds = 0; rounds < 40; rounds++) {
          const open = differences(one, ahead);
          if (!open.length) break;
          ahead = takeEdit(one, ahead, open[picks.next().value % open.length]);
          expect(isLegal(one, ahead)).toBe(true);
        }
        expect(cutKey(ahead)).toBe(cutKey(one.cuts[one.smart].leaves));
      }),
    );
  });

  test("that Python knows is legal", () => {
    for (const one of flows) {
      for (const cut of one.cuts) expect(isLegal(one, new Set(cut.leaves))).toBe(true);
    }
  });

  test("has a name that does not depend on the order of its leaves", () => {
    expect(cutKey(new Set([10, 2, 1]))).toBe("1,2,10");
  });
});

describe("what travels", () => {
  test("is nothing where nothing runs ahead, unless a stage is there already", () => {
    for (const one of flows.filter(({ makers }) => makers.every(({ leaf }) => leaf >= 0))) {
      expect(crossing(one, new Set())).toMatchObject({ tensors: 0, bytes: 0, unknown: 0 });
    }
  });

  test("crosses from what runs ahead to what does not", () => {
    fc.assert(
      fc.property(legalCut, ([one, ahead]) => {
        const found = crossing(one, ahead);
        for (const link of found.links) {
          const [source, target] = link.split(">").map((place) => one.boxes[place]);
          expect(shareAhead(source, ahead)).toBeGreaterThan(0);
          expect(shareAhead(target, ahead)).toBeLessThan(1);
        }
        for (const count of found.reads.values()) expect(count).toBeGreaterThan(0);
      }),
    );
  });

  test("is counted by hand", () => {
    // 0 is read by 1 and 2, which nothing needs: their boxes that stay are 3 and 4.
    const one = flowOf([[], [0], [0]]);
    const found = (ahead) => {
      const { tensors, bytes, reads } = crossing(one, new Set(ahead));
      return [tensors, bytes, [...reads].sort()];
    };
    expect(found([0])).toEqual([1, 8, [[1, 1], [2, 1]]]);
    expect(found([0, 1])).toEqual([2, 16, [[2, 1], [3, 1]]]);
    expect(found([0, 1, 2])).toEqual([2, 16, [[3, 1], [4, 1]]]);
  });

  test("in words", () => {
    expect([0, 999, 1000, 53_248, 7_200_000].map((bytes) => byteWords(bytes, 0))).toEqual(
      ["0\u00a0B", "999\u00a0B", "1.0\u00a0kB", "53\u00a0kB", "7.2\u00a0MB"],
    );
    expect(byteWords(0, 2)).toBe("size not known");
    expect(byteWords(10, 2)).toBe("10\u00a0B and 2 of unknown size");
  });
});

describe("the line", () => {
  test("runs from the top to the bottom, right of all that runs ahead", () => {
    fc.assert(
      fc.property(legalCut, ([one, ahead]) => {
        const points = linePoints(one, ahead);
        expect([points[0][1], points.at(-1)[1]]).toEqual([0, one.height]);
        points.forEach(([x, y], k) => {
          expect(Number.isFinite(x)).toBe(true);
          if (k) expect(y).toBeGreaterThanOrEqual(points[k - 1][1]);
        });
        for (const box of one.boxes.filter(({ leaves }) => leaves.length)) {
          if (shareAhead(box, ahead) < 1) continue;
          expect(lineAt(points, box.y + BOX_H / 2)).toBeGreaterThanOrEqual(box.x + BOX_W);
        }
      }),
    );
  });

  test("has a pill for each box that reads, and none on another", () => {
    fc.assert(
      fc.property(legalCut, ([one, ahead]) => {
        const found = crossing(one, ahead);
        const pills = pillsOf(one, ahead, linePoints(one, ahead), found);
        expect(pills.map(({ box }) => box).sort()).toEqual([...found.reads.keys()].sort());
        pills.forEach((pill, k) => {
          for (const other of pills.slice(0, k)) {
            if (other.x === pill.x) expect(Math.abs(other.y - pill.y)).toBeGreaterThanOrEqual(PILL_GAP);
          }
        });
      }),
    );
  });

  test("is crossed by links that end at their boxes", () => {
    for (const one of flows) {
      for (const link of one.links.filter(({ at }) => at.length)) {
        const [source, target] = [one.boxes[link.source], one.boxes[link.target]];
        const d = linkPath(one, link);
        expect(d.startsWith(`M${source.x + BOX_W} ${link.at[0]}`)).toBe(true);
        expect(Number(d.split("H").at(-1))).toBe(target.x);
        expect(d.split("C").length).toBe(link.at.length);
      }
    }
  });
});

test("a cut as code names each node once, by what is shorter", () => {
  const one = flows.find(({ named, leaves }) => named && leaves.length);
  const all = withNeeds(one, one.leaves.keys());
  expect(cutCode(one, all)).toBe("plan = wb.plan(boundary, exclude=[])");
  expect(cutCode(one, new Set())).toMatch(/^plan = wb.plan\(boundary, exclude=\["/);
  const [first] = one.leaves.keys();
  expect(cutCode(one, withNeeds(one, [first]))).toMatch(/^plan = wb.plan\(boundary, (in|ex)clude=\["/);
  expect(cutCode({ ...one, named: false }, all)).toContain("too many nodes to name here");
});

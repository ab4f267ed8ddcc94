import fc from "fast-check";
import { findMatches, matchTotals, matchWords, nextMatch } from "static/timeline/control/search.js";
import { WAIT } from "static/timeline/draw/decode.js";
import { expect, test } from "vitest";
import { anyLane, modelOf } from "./models.js";

const query = fc.constantFrom("in", "MATMUL", " lookup ", "s", "/", "nothing");

test("names match without regard to case, and totals are those of their spans", () => {
  fc.assert(
    fc.property(anyLane, query, (model, text) => {
      const matches = findMatches(model, text);
      const wanted = [...model.name.keys()].filter((i) =>
        model.names[model.name[i]].toLowerCase().includes(text.trim().toLowerCase()),
      );
      expect([...model.name.keys()].filter((i) => matches[model.name[i]])).toEqual(wanted);
      const total = wanted.reduce((sum, i) => sum + model.dur[i], 0);
      expect(matchTotals(model, matches)).toEqual({ count: wanted.length, total });
    }),
  );
});

test("the next one goes through all, and then begins anew", () => {
  fc.assert(
    fc.property(anyLane, query, (model, text) => {
      const matches = findMatches(model, text);
      const { count } = matchTotals(model, matches);
      const seen = [];
      for (let t = -1; seen.length <= count; t = model.start[seen.at(-1)]) {
        const next = nextMatch(model, matches, t);
        if (next < 0) break;
        seen.push(next);
      }
      expect(new Set(seen).size).toBe(count);
      if (count) expect(seen.at(-1)).toBe(seen[0]);
    }),
  );
});

test("nothing asked for is no search; waits and runs have no node", () => {
  const model = modelOf("by hand");
  expect(findMatches(model, "  ")).toBe(null);
  const matches = findMatches(model, "wait");
  expect([...matches].some(Boolean)).toBe(false);
  model.names.forEach((_, k) => {
    if (model.nameFamily[k] >= WAIT) expect(findMatches(model, "a")[k]).toBe(0);
  });
});

test("the answer in words", () => {
  const model = modelOf("by hand");
  const words = (text) => matchWords(model, findMatches(model, text), text);
  expect(words("")).toBe("");
  expect(words(" c99 ")).toBe("No op has “c99” in its name");
  expect(words("lookup")).toBe("1 span, 3.0\u00a0ms a step");
  expect(words("hash")).toBe("2 spans, 2.0\u00a0ms a step");
});

import fc from "fast-check";
import { duration, fixed, integer } from "static/shared/format.js";
import { expect, test } from "vitest";
import { views } from "./models.js";

test.each(views.durations)("%i ns as Python writes it", (ns, words) => {
  expect(duration(ns)).toBe(words);
});

test.each(views.integers)("%i as Python writes it", (count, words) => {
  expect(integer(count)).toBe(words);
});

test("what is not known is a dash", () => {
  expect([null, undefined, NaN, Infinity].map(duration)).toEqual(Array(4).fill("–"));
});

const PER = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };

test("a duration is right to the digits that it shows, three at most", () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 * 10 ** 9 }), (ns) => {
      const [number, unit] = duration(ns).split("\u00a0");
      const decimals = (number.split(".")[1] || "").length;
      expect(number.replace(".", "").replace(/^0+/, "").length).toBeLessThanOrEqual(3);
      expect(Math.abs(Number(number) * PER[unit] - ns)).toBeLessThanOrEqual((PER[unit] / 10 ** decimals) * 0.5 + 1e-6);
    }),
  );
});

test("a number is rounded half up from integers alone", () => {
  expect(fixed(1_050_000, 1_000_000, 1)).toBe("1.1");
  expect(fixed(9_999_999, 1_000_000, 2)).toBe("10.00");
  expect(fixed(1_234_567_000, 1_000_000, 0)).toBe("1\u2009235");
});

import fc from "fast-check";
import { setFont, shortName, shorten, textWidth } from "static/timeline/draw/labels.js";
import { expect, test } from "vitest";
import { LETTER, recordedContext } from "./recorded.js";

const theme = () => ({ font: "sans", widths: new Map() });

test("no text is wider than its room, and what is cut ends with an ellipsis", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), fc.integer({ min: 0, max: 260 }), (text, room) => {
      const [ctx, own] = [recordedContext(), theme()];
      const shown = shorten(ctx, own, text, room);
      expect(LETTER * shown.length).toBeLessThanOrEqual(room);
      if (shown === text || shown === "") return;
      expect(shown.endsWith("…")).toBe(true);
      expect(text.startsWith(shown.slice(0, -1))).toBe(true);
      // One letter more would not fit.
      expect(LETTER * (shown.length + 1)).toBeGreaterThan(room);
    }),
  );
});

test("a text that fits is whole; one of which not even two letters do is left out", () => {
  const [ctx, own] = [recordedContext(), theme()];
  expect(shorten(ctx, own, "MatMul", 6 * LETTER)).toBe("MatMul");
  expect(shorten(ctx, own, "MatMul", 3 * LETTER)).toBe("Ma…");
  expect(shorten(ctx, own, "MatMul", 2 * LETTER)).toBe("");
});

test("a width is measured once for each font", () => {
  const [ctx, own] = [recordedContext(), theme()];
  setFont(ctx, own, 11);
  textWidth(ctx, own, "step");
  textWidth(ctx, own, "step");
  setFont(ctx, own, 12, true);
  textWidth(ctx, own, "step");
  expect([...own.widths.keys()]).toEqual(["11px sansstep", "600 12px sansstep"]);
});

test("a name without its scopes", () => {
  expect(["a/b/MatMul", "MatMul", "a/"].map(shortName)).toEqual(["MatMul", "MatMul", "a/"]);
});

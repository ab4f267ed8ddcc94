import fc from "fast-check";
import { windowOn, windowOnStep } from "static/timeline/control/state.js";
import { GUTTER } from "static/timeline/draw/scales.js";
import { describe, expect, test } from "vitest";
import { laneAndWindow, modelOf, stateOf } from "./models.js";

describe.each(["staged", "unstaged", "by hand"])("a new state: %s", (name) => {
  test("shows a part of the trace with its middle step", () => {
    const { model, window, step } = stateOf(modelOf(name));
    const [from, to] = window;
    expect(from).toBeGreaterThanOrEqual(-0.02 * model.duration);
    expect(to).toBeLessThanOrEqual(1.02 * model.duration);
    expect(from).toBeLessThan(model.stepEnd[step]);
    expect(to).toBeGreaterThan(model.stepStart[step]);
    expect(step).toBe(model.steps >> 1);
  });

  test("has nothing selected, and places moments across its width", () => {
    const s = stateOf(modelOf(name), 1004);
    expect([s.selected, s.hovered, s.matches]).toEqual([-1, -1, null]);
    expect(s.x(s.window[0])).toBeCloseTo(GUTTER, 6);
    expect(s.x(s.window[1])).toBeCloseTo(1004, 6);
  });
});

test("the window moves to a span no more than needed", () => {
  fc.assert(
    fc.property(laneAndWindow, fc.nat(), ([model, window], any) => {
      const s = stateOf(model, 404, window);
      const i = any % model.start.length;
      const [from, to] = windowOn(s, i);
      const end = model.start[i] + model.dur[i];
      if (model.start[i] >= window[0] && end <= window[1]) expect([from, to]).toEqual(window);
      else {
        expect(from).toBeLessThanOrEqual(model.start[i] + 1e-6);
        expect(to).toBeGreaterThan(model.start[i] - 1e-6);
      }
    }),
  );
});

test("the window moves to a step", () => {
  const s = stateOf(modelOf("staged"));
  for (const k of Array(s.model.steps).keys()) {
    const middle = (s.model.stepStart[k] + s.model.stepEnd[k]) / 2;
    const [from, to] = windowOnStep({ ...s, window: [0, 1000] }, k);
    expect(from).toBeLessThanOrEqual(middle);
    expect(to).toBeGreaterThanOrEqual(middle);
  }
});

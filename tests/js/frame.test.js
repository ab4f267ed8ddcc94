// Whole frames as text: a line for each call on the canvas.
import { drawFrame } from "static/timeline/draw/draw_frame.js";
import { beforeAll, expect, test } from "vitest";
import { modelOf, stateOf } from "./models.js";
import { RecordedPath, recordedContext } from "./recorded.js";

beforeAll(() => {
  globalThis.Path2D = RecordedPath;
});

function drawn(name, window = null) {
  const model = modelOf(name);
  const ctx = recordedContext();
  drawFrame(ctx, stateOf(model, 904, window && window(model)));
  return `${ctx.lines.join("\n")}\n`;
}

test.each(["staged", "unstaged"])("the opening frame: %s", async (name) => {
  await expect(drawn(name)).toMatchFileSnapshot(`./drawn/${name}.txt`);
});

test("a frame is the same when it is drawn again", () => {
  const s = stateOf(modelOf("staged"));
  const [first, second] = [recordedContext(), recordedContext()];
  drawFrame(first, s);
  drawFrame(second, s);
  expect(second.lines).toEqual(first.lines);
});

test("nothing is drawn right of the frame, nor text left of the lanes' names", () => {
  const lines = drawn("staged", ({ duration }) => [0.4 * duration, 0.6 * duration]).split("\n");
  const places = lines.map((line) => /^fillText .* (-?[\d.]+) (-?[\d.]+) /.exec(line)).filter(Boolean);
  expect(places.length).toBeGreaterThan(4);
  for (const [, x] of places) {
    expect(Number(x)).toBeGreaterThanOrEqual(12);
    expect(Number(x)).toBeLessThan(904);
  }
});

import { fromBase64 } from "static/shared/unpack.js";
import { decode, laneOf, pathOrder } from "static/timeline/draw/decode.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import { modelOf, packed, views } from "./models.js";

const NAMES = Object.keys(views.timelines);

describe.each(NAMES)("a packed view: %s", (name) => {
  test("has spans in order that do not overlap", () => {
    const { lanes, start, dur } = modelOf(name);
    for (const lane of lanes.filter(({ kind }) => kind !== "buffer")) {
      for (let i = lane.first + 1; i < lane.first + lane.count; i++) {
        expect(start[i]).toBeGreaterThanOrEqual(start[i - 1] + dur[i - 1]);
      }
    }
  });

  test("has a name, an op and a lane for each span", () => {
    const model = modelOf(name);
    for (const i of model.start.keys()) {
      expect(model.names[model.name[i]]).toBeTruthy();
      const lane = model.lanes[laneOf(model, i)];
      expect(i).toBeGreaterThanOrEqual(lane.first);
      expect(i).toBeLessThan(lane.first + lane.count);
    }
    expect(laneOf(model, model.start.length)).toBe(-1);
  });

  test("has the ops of its path by time", () => {
    const model = modelOf(name);
    if (!model.critical) return;
    const starts = pathOrder(model).map((i) => model.start[i]);
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(starts.length).toBe(model.critical.filter(Boolean).length);
  });

  test("has lanes and steps before its data is there", () => {
    const { header, bytes } = packed(name);
    const early = decode(header);
    expect(early.pending).toBe(true);
    expect(early.lanes).toEqual(decode(header, bytes).lanes);
    expect(early.start.length).toBe(0);
  });
});

test("times are those of the trace", () => {
  const { names, name, start, dur } = modelOf("by hand");
  const found = [...start.keys()].map((i) => [names[name[i]], start[i] / 1e6, dur[i] / 1e6]);
  expect(found).toEqual(
    expect.arrayContaining([["lookup", 5, 3], ["gradients/top/MatMul", 9, 1], ["wait in take", 1, 4]]),
  );
});

test("another format and short data are refused", () => {
  const { header, bytes } = packed("by hand");
  expect(() => decode({ ...header, version: 9 }, bytes)).toThrow("Timeline format 9; this page reads 3.");
  expect(() => decode(header, bytes.slice(0, 8))).toThrow(`has 8 of ${header.bytes} bytes`);
});

describe("bytes in base64", () => {
  const own = Uint8Array.fromBase64;
  afterEach(() => (Uint8Array.fromBase64 = own));

  test("are read in browsers that have no way of their own", () => {
    Uint8Array.fromBase64 = undefined;
    expect([...fromBase64("\nAP+A\n")]).toEqual([0, 255, 128]);
  });

  test("are left to a browser that has one", () => {
    Uint8Array.fromBase64 = vi.fn(() => "read");
    expect(fromBase64("AP+A")).toBe("read");
  });
});

import fc from "fast-check";
import { hostOfModel, hostOfPage } from "static/panel/embed.js";
import { settingKey, steppedNumber } from "static/panel/setting.js";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { views } from "./models.js";

const NO_KERNEL = "The kernel is not connected. Views still work.";
const OFF = {
  stage: "off", capacity: 0, threads: 0, thread_pool: false, stale_lookups: 0, fusion: "off", executor: "normal",
  inter_op_threads: 0, intra_op_threads: 0, batch_size: 0, cut: "", chosen: {},
};
const KEY = settingKey(OFF);
const AGAINST = ["throughput", "two_runs"];
const RUNS = [
  { number: 1, name: "All off", against_base: AGAINST },
  { number: 2, name: "SmartStage", against_base: [...AGAINST, "boundary"] },
];
const VIEW = { of_all_runs: ["throughput", "what_if"], of_graphs: ["boundary", "what_if"] };

describe("a setting", () => {
  test.each(views.settings)("has the key that Python gives it: %j", (setting, key) => {
    expect(settingKey(setting)).toBe(key);
  });

  test("counts where the line was moved to only where that is chosen", () => {
    const moved = { ...OFF, cut: "-hash" };
    expect(settingKey(moved)).toBe(KEY);
    const chosen = { ...moved, stage: "moved" };
    expect(settingKey(chosen)).not.toBe(settingKey({ ...chosen, cut: "-parse" }));
  });

  test("is stepped by the step of its number, between nothing and the most", () => {
    fc.assert(
      fc.property(fc.nat(300), fc.constantFrom(1, -1), fc.integer({ min: 1, max: 64 }), (now, by, step) => {
        const next = steppedNumber(Math.min(now, 256), by, { step, most: 256 });
        expect(next).toBeGreaterThanOrEqual(0);
        expect(next).toBeLessThanOrEqual(256);
        expect(Math.abs(next - Math.min(now, 256))).toBeLessThanOrEqual(step);
      }),
    );
  });
});

describe("the host of a page", () => {
  const stored = () => ({
    view: VIEW,
    state: { ...OFF, run_list: RUNS, shown: 1, base: 1, tab: "throughput" },
    settings: [{ key: KEY, name: "All off" }],
    contents: {
      "1/throughput/1": { html: "one" },
      "1/throughput/2": { html: "against two" },
      "2/throughput/1": { html: "two" },
      "1/memory": { html: "memory" },
      "*/what_if": { html: "of all" },
    },
    missing: "not stored",
  });

  test("finds a tab by run, by run and baseline, or for all", async () => {
    const host = hostOfPage(stored());
    expect((await host.content("throughput")).html).toBe("one");
    expect((await host.content("memory")).html).toBe("memory");
    expect((await host.content("what_if")).html).toBe("of all");
    expect([1, 2, 3].map(host.hasBase)).toEqual([true, true, false]);
    host.set("base", 2);
    expect((await host.content("throughput")).html).toBe("against two");
    expect((await host.content("memory")).html).toBe("memory");
    host.set("shown", 2);
    expect([1, 2].map(host.hasBase)).toEqual([true, false]);
  });

  test("asks for a tab again only where what it shows has changed", () => {
    const host = hostOfPage(stored());
    const keys = () => ["throughput", "timeline", "what_if"].map(host.contentKey);
    const first = keys();
    host.set("base", 2);
    expect(keys().map((key, i) => key !== first[i])).toEqual([true, false, false]);
  });

  test("asks again for what rests on graphs and predictions once these are known", () => {
    const host = hostOfPage(stored());
    const keys = () => ["throughput", "boundary", "what_if"].map(host.contentKey);
    const first = keys();
    host.set("learned", 1);
    expect(keys().map((key, i) => key !== first[i])).toEqual([false, true, true]);
  });

  test("asks for a boundary against another baseline only where the run has no times of its own", () => {
    const host = hostOfPage(stored());
    const changes = (shown) => {
      host.set("shown", shown);
      host.set("base", 1);
      const before = host.contentKey("boundary");
      host.set("base", 2);
      return host.contentKey("boundary") !== before;
    };
    expect([1, 2].map(changes)).toEqual([false, true]);
  });

  test("knows the settings that are stored, and no kernel", () => {
    const host = hostOfPage(stored());
    const told = [];
    host.listen((changed) => told.push(...changed), new AbortController().signal);
    expect(host.said().name).toBe("All off");
    host.set("stage", "smart");
    host.set("stage", "smart");
    expect(host.said()).toBe(null);
    expect(told).toEqual(["stage"]);
    expect(host.live).toBe(false);
    expect(host.status()).toBe(NO_KERNEL);
  });
});

// what anywidget gives of a model
function newModel() {
  const state = {
    ...OFF, view: VIEW, run_list: RUNS, shown: 1, base: 1, tab: "throughput", job: { running: true },
    said: { key: KEY, name: "All off" }, status: "Ready. The kernel is free.", saved: "",
  };
  const heard = new Map();
  return {
    state,
    sent: [],
    get: (name) => state[name],
    set: (name, value) => (state[name] = value),
    save_changes() {},
    send(message) {
      this.sent.push(message);
    },
    on: (name, callback) => heard.set(name, callback),
    off: (name) => heard.delete(name),
    tell: (name, ...rest) => heard.get(name)(...rest),
    heard,
  };
}

describe("the host of a model", () => {
  let model, life, host;
  beforeEach(() => {
    vi.useFakeTimers();
    model = newModel();
    life = new AbortController();
    host = hostOfModel(model, life.signal);
    return () => {
      life.abort();
      vi.useRealTimers();
    };
  });

  test("asks the kernel for a tab, and takes the answer of the same question", async () => {
    const content = host.content("memory");
    const [{ id, ...asked }] = model.sent;
    expect(asked).toEqual({ kind: "content", tab: "memory", run: 1, base: 1 });
    model.tell("msg:custom", { kind: "content", id: id + 1, html: "other" }, []);
    model.tell("msg:custom", { kind: "content", id, html: "mine" }, []);
    expect((await content).html).toBe("mine");
  });

  test("says that an answer is late, until it comes", async () => {
    const content = host.content("memory");
    vi.advanceTimersByTime(9000);
    expect(host.status()).toBe("The kernel has not answered yet: it is busy, or not connected.");
    model.tell("msg:custom", { kind: "content", id: model.sent[0].id, html: "" }, []);
    await content;
    expect(host.status()).toBe("Ready. The kernel is free.");
  });

  test("keeps what is told of settings, so that a toggle needs no answer", () => {
    const other = settingKey({ ...OFF, stage: "smart" });
    model.tell("msg:custom", { kind: "settings", settings: [{ key: other, name: "SmartStage" }] }, []);
    host.set("stage", "smart");
    expect(host.said().name).toBe("SmartStage");
    expect(model.state.stage).toBe("smart");
  });

  test("tells what code has changed, once", () => {
    const told = [];
    host.listen((changed) => told.push(changed), life.signal);
    model.state.stage = "own";
    model.tell("change");
    model.tell("change");
    expect(told).toEqual([["stage"]]);
  });

  test("sends the setting with what measures it: a change may wait for a busy kernel", () => {
    host.set("stage", "own");
    host.set("stop_when_clear", true);
    ["run", "run_when_free", "find_best", "cancel"].forEach((kind) => host.act(kind));
    const values = { ...OFF, stage: "own", stop_when_clear: true };
    expect(model.sent).toEqual([
      ...["run", "run_when_free", "find_best"].map((kind) => ({ kind, values })),
      { kind: "cancel" },
    ]);
  });

  test("one question about a cut at a time, then the newest", () => {
    const cuts = host.cuts(1);
    const answers = [];
    cuts.listen({ told: (one) => answers.push(one), unanswered: () => answers.push(null) }, life.signal);
    [[1], [2], [3]].forEach(cuts.ask);
    expect(model.sent.map(({ leaves }) => leaves)).toEqual([[1]]);
    model.tell("msg:custom", { kind: "told", answer: "first", final: true }, []);
    expect(model.sent.map(({ leaves }) => leaves)).toEqual([[1], [3]]);
    model.tell("msg:custom", { kind: "told", answer: null, final: true }, []);
    expect(answers).toEqual(["first", null]);
  });

  test("without its kernel it says so, ends what waits and asks nothing more", async () => {
    const content = host.content("memory");
    model.tell("comm_live_update");
    await expect(content).rejects.toThrow("run the cell again");
    expect([host.live, host.status(), host.job().running]).toEqual([false, NO_KERNEL, false]);
    host.act("run");
    expect(model.sent.map(({ kind }) => kind)).toEqual(["content"]);
    await expect(host.content("lens")).rejects.toThrow("run the cell again");
  });

  test("ends with its signal", () => {
    life.abort();
    expect([...model.heard.keys()]).toEqual([]);
  });
});

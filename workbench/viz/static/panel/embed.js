// The two hosts of a panel: a widget's model, whose kernel answers, and a page that holds it all.
import { bytesOf } from "../shared/bytes.js";
import { element, hideStill } from "../shared/dom.js";
import { unpacked } from "../shared/packed_json.js";
import { pageNumber } from "../shared/page_number.js";
import { fromBase64 } from "../shared/unpack.js";
import { mountPanel } from "./mount.js";
import { SETTING_FIELDS, settingKey } from "./setting.js";
import { letStick } from "./sticking.js";

const ANSWER_LATE = 8000; // ms without an answer until that is said
const ANSWERS_LATE = "The kernel has not answered yet: it is busy, or not connected.";
const NOT_FETCHED = "This view was not opened while the kernel was connected; run the cell again.";
const PANEL_NO_KERNEL = "The kernel is not connected. Views still work.";
const IDLE = { running: false, share: null, words: "", left: "", phases: [], error: "", details: "" };

// What measures has the setting with it: a change that the page has made waits its turn while the
// kernel is busy, and a message does not.
const WITH_SETTING = ["run", "run_when_free", "find_best"];

// What both have: state by name, who listens, and what was said of settings.
function newHost(view, state, live) {
  const listeners = new Set();
  const known = new Map();
  const host = {
    id: pageNumber(),
    view,
    live,
    state,
    known,
    sorting: { key: "", order: "none" },
    get: (name) => state[name],
    said: () => known.get(settingKey(state)) || null,
    job: () => state.job || IDLE,
    listen(callback, signal) {
      listeners.add(callback);
      signal.addEventListener("abort", () => listeners.delete(callback));
    },
    tell(changed) {
      for (const callback of listeners) callback(changed);
    },
    contentKey(tab) {
      const run = state.run_list.find(({ number }) => number === state.shown);
      const base = run && run.against_base.includes(tab) ? state.base : 0;
      const runs = host.view.of_all_runs.includes(tab) ? state.run_list.length : 0;
      const learned = host.view.of_graphs.includes(tab) ? state.learned : 0;
      return [tab, state.shown, base, runs, learned, state.edited || 0].join("/");
    },
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      host.changed(name, value);
      host.tell([name]);
    },
    changed() {},
    act() {},
    status: () => (live ? "" : PANEL_NO_KERNEL),
    cuts: () => null,
    hasBase: () => true,
    onFlash() {},
  };
  return host;
}

const SYNCED = [
  ...SETTING_FIELDS, "view", "run_list", "shown", "base", "tab", "selected", "selected_table", "job", "saved",
  "saved_path", "status", "news", "shape", "learned", "edited", "can_undo", "can_redo", "stop_when_clear",
];

export function hostOfModel(model, signal) {
  const state = {};
  for (const name of SYNCED) state[name] = model.get(name);
  const host = newHost(model.get("view"), state, true);
  const note = (said) => said && said.key && host.known.set(said.key, said);
  note(model.get("said"));
  const waiting = new Map();
  let question = 0;
  let told = null;

  host.changed = (name, value) => {
    model.set(name, value);
    model.save_changes();
  };
  const setting = () => Object.fromEntries([...SETTING_FIELDS, "stop_when_clear"].map((name) => [name, state[name]]));
  host.act = (kind, rest = {}) => {
    const values = WITH_SETTING.includes(kind) ? { values: setting() } : {};
    return host.live && model.send({ kind, ...values, ...rest });
  };
  host.status = () => (host.live ? state.status || "" : PANEL_NO_KERNEL);
  host.job = () => (host.live && state.job) || IDLE;
  const tellStatus = (words) => {
    state.status = words;
    host.tell(["status"]);
  };
  const request = (kind, tab, rest) =>
    new Promise((resolve, reject) => {
      if (!host.live) {
        reject(new Error(NOT_FETCHED));
        return;
      }
      const id = ++question;
      waiting.set(id, { resolve, reject });
      model.send({ kind, id, tab, run: state.shown, base: state.base, ...rest });
      const late = () => {
        if (waiting.has(id) && host.live) tellStatus(ANSWERS_LATE);
      };
      const timer = setTimeout(late, ANSWER_LATE);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        waiting.delete(id);
      });
    });
  host.content = (tab) => request("content", tab);
  host.figure = (tab, wish) => request("figure", tab, wish);
  // one question about a cut at a time, then the newest: a drag asks faster than a kernel answers
  host.cuts = (run) => {
    let asked = null;
    let next = null;
    const ask = (leaves) => {
      next = leaves;
      if (asked) return;
      [asked, next] = [next, null];
      model.send({ kind: "cut", run, leaves: asked });
    };
    return {
      ask,
      moved: (leaves) => model.send({ kind: "moved", run, leaves }),
      listen(move, life) {
        told = ({ answer, final }) => {
          if (answer) move.told(answer);
          if (!final) return;
          asked = null;
          if (next) ask(next);
          else if (!answer) move.unanswered();
        };
        life.addEventListener("abort", () => {
          told = null;
        });
      },
    };
  };
  const onMessage = (message, buffers) => {
    if (["content", "figure"].includes(message.kind) && waiting.has(message.id)) {
      const { resolve } = waiting.get(message.id);
      waiting.delete(message.id);
      if (state.status === ANSWERS_LATE) tellStatus(model.get("status"));
      const datas = buffers.map(bytesOf);
      resolve({ ...message, data: datas[0] || null, datas, packed: false });
    }
    if (message.kind === "settings") {
      message.settings.forEach(note);
      host.tell(["said"]);
    }
    if (message.kind === "told" && told) told(message);
    if (message.kind === "flash") host.onFlash(message.group);
  };
  model.on("msg:custom", onMessage);
  const onChange = () => {
    const changed = [];
    for (const name of SYNCED) {
      const value = model.get(name);
      if (value === state[name]) continue;
      state[name] = value;
      changed.push(name);
    }
    const said = model.get("said");
    if (said && host.known.get(said.key) !== said) {
      note(said);
      changed.push("said");
    }
    if (changed.includes("view")) host.view = state.view;
    if (changed.length) host.tell(changed);
  };
  model.on("change", onChange);
  // a kernel that restarts has forgotten the panel: what was drawn stays, nothing more can be asked
  const onGone = () => {
    host.live = false;
    for (const { reject } of waiting.values()) reject(new Error(NOT_FETCHED));
    waiting.clear();
    host.tell(["status", "job"]);
  };
  const ends = ["comm_live_update", "comm:close"];
  for (const name of ends) model.on(name, onGone);
  signal.addEventListener("abort", () => {
    model.off("msg:custom", onMessage);
    model.off("change", onChange);
    for (const name of ends) model.off(name, onGone);
  });
  return host;
}

// stored: what PanelPage.to_json made: the view, the state, settings, and contents by run and tab.
export function hostOfPage(stored) {
  const host = newHost(stored.view, { ...stored.state, job: IDLE }, false);
  for (const said of stored.settings) host.known.set(said.key, said);
  const stands = (tab, base = host.get("base")) => {
    const key = `${host.get("shown")}/${tab}`;
    return stored.contents[`${key}/${base}`] || stored.contents[key] || stored.contents[`*/${tab}`];
  };
  host.hasBase = (base) => Boolean(stands("throughput", base));
  host.content = async (tab) => {
    const found = stands(tab);
    if (!found) return { html: stored.missing };
    if (found.pair) {
      const datas = found.of.map((key) => fromBase64(stored.contents[key].data));
      return { ...found, datas, packed: true };
    }
    return { ...found, data: found.data ? fromBase64(found.data) : null, packed: true };
  };
  return host;
}

export function renderPanel({ model, el }) {
  const life = new AbortController();
  const root = document.createElement("div");
  el.append(root);
  const host = hostOfModel(model, life.signal);
  mountPanel(root, host, { signal: life.signal });
  letStick(root, life.signal);
  hideStill(model.get("still"), life.signal);
  return () => {
    life.abort();
    root.remove();
  };
}

// Mounts the panels of a page; where one cannot be drawn, the reason stands in its place.
export async function mountPanels(page = document) {
  const mounted = [];
  for (const root of page.querySelectorAll("[data-wb-panel]")) {
    try {
      const stored = await unpacked(fromBase64(page.getElementById(`${root.dataset.wbPanel}-data`).textContent));
      const { signal } = new AbortController();
      const holder = element("div", {});
      root.replaceChildren(holder);
      await mountPanel(holder, hostOfPage(stored), { signal });
      mounted.push(holder);
    } catch (error) {
      root.replaceChildren(element("p", { class: "wb-quiet", role: "status" }, error.message));
    }
  }
  return mounted;
}

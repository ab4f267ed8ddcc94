// The strip on top of a panel, in every layout: the setting, what to do with it, how a run goes, and
// what came of it.
import { element } from "../shared/dom.js";
import { copyingElement } from "./copying.js";
import { progressElement } from "./progress.js";

const NO_SETTING = "This setting is not stored in the page.";
const MEASURING = "It is being measured.";
const SOURCES = { measured: ", measured", predicted: ", predicted" };

export function panelButton(words, { signal, onClick, ...attributes }) {
  const { class: more = "", ...others } = attributes;
  const made = element("button", { type: "button", class: `wbp-btn ${more}`.trim(), ...others }, words);
  made.addEventListener("click", onClick, { signal });
  return made;
}

function settingElement(host) {
  const name = element("div", { class: "wbp-title" });
  const rate = element("span", { class: "wb-strong" });
  const rest = element("span", {});
  const root = element("div", { class: "wbp-setting" }, name, element("div", { class: "wbp-small" }, rate, rest));
  return {
    root,
    update() {
      const said = host.said();
      name.textContent = said ? said.name : "";
      rate.textContent = said ? said.rate : "";
      const known = said && said.rate ? [` ${said.half} steps/s`, SOURCES[said.source], ", "].join("") : "";
      const unknown = host.live ? "…" : NO_SETTING;
      rest.textContent = host.job().running && !known ? MEASURING : known + (said ? said.beside : unknown);
    },
  };
}

// Fold of the column where the panel is narrow.
function editElement(column, signal) {
  const edit = panelButton("Edit toggles", {
    class: "wbp-edit", "aria-expanded": "false", signal,
    onClick: () => {
      const open = column.root.classList.toggle("wbp-open");
      edit.setAttribute("aria-expanded", String(open));
      edit.textContent = open ? "Hide toggles" : "Edit toggles";
    },
  });
  return edit;
}

function runWords(host) {
  const said = host.said();
  if (host.job().running) return "Cancel";
  return said && said.ran ? "Run again" : "Run";
}

function actionsElement(host, column, copied, signal) {
  const act = (kind) => () => host.act(kind);
  const run = panelButton("Run", {
    class: "wbp-run", signal, onClick: () => host.act(host.job().running ? "cancel" : "run"),
  });
  const find = panelButton("Find the best", { signal, onClick: act("find_best") });
  const copy = panelButton("Copy as Python", { signal, onClick: () => copied(host.said().code) });
  const report = panelButton("Report", { signal, onClick: act("report") });
  const edit = editElement(column, signal);
  const box = element("input", { type: "checkbox" });
  box.addEventListener("change", () => host.set("stop_when_clear", box.checked), { signal });
  const clear = element("label", { class: "wbp-flag" }, box, "Stop when clear");
  const all = host.live ? [run, find, copy, report, clear, edit] : [run, find, copy, edit];
  return {
    root: element("div", { class: "wbp-acts" }, ...all),
    update() {
      const { running } = host.job();
      run.textContent = runWords(host);
      run.classList.toggle("wbp-primary", !running);
      run.disabled = find.disabled = !host.live;
      find.hidden = running;
      copy.disabled = !host.said();
      // before anything ran there is nothing to report
      report.hidden = clear.hidden = !host.get("run_list").length;
      box.checked = Boolean(host.get("stop_when_clear"));
      box.disabled = running;
      report.disabled = !host.live;
    },
  };
}

// What has just happened, and what is predicted to be faster.
function newsElement(host, onUntried, signal) {
  const sentence = element("p", { class: "wbp-news", role: "status" });
  const more = element("span", { class: "wb-quiet" });
  const untried = element("div", { class: "wbp-untried wbp-small", role: "group", "aria-label": "Not tried yet" });
  const root = element("div", { class: "wbp-happened" }, sentence, untried);
  const draw = ({ label, gain, group, value }) => {
    const words = [element("i", { class: "wbp-mark wbp-predicted", "aria-hidden": "true" }), `${label} ${gain}`];
    if (!host.live) return element("span", { class: "wbp-chip" }, ...words);
    const made = panelButton("", { class: "wbp-try", signal, onClick: () => onUntried(group, value) });
    made.setAttribute("aria-label", `Try it: ${label}, predicted ${gain}`);
    made.append(...words);
    return made;
  };
  return {
    root,
    update() {
      const { running, words, error } = host.job();
      const { pieces = [], more: behind = "" } = host.get("news") || {};
      const said = pieces.map(([text, strong]) => (strong ? element("strong", {}, text) : text));
      // that the kernel is gone is said beside whatever happened before
      more.textContent = [behind, host.live ? "" : host.status()].filter(Boolean).join(" ");
      const quiet = running || error;
      const drawn = said.length ? [...said, " ", more] : quiet ? [] : [words || host.status()];
      const key = drawn.map((one) => one.textContent ?? one).join("");
      if (sentence.textContent !== key) sentence.replaceChildren(...drawn);
      sentence.hidden = !key;
      const all = host.said()?.untried || [];
      untried.hidden = running || !all.length;
      root.hidden = Boolean(error) && sentence.hidden && untried.hidden;
      untried.replaceChildren("Predicted, not tried: ", ...all.map(draw));
    },
  };
}

function errorElement(host, signal) {
  const words = element("p", { class: "wbp-error" });
  const trace = element("pre", { class: "wbp-code", hidden: "", tabindex: "0", "aria-label": "Traceback" });
  const show = panelButton("Show traceback", {
    "aria-expanded": "false", signal,
    onClick: () => {
      trace.hidden = !trace.hidden;
      show.setAttribute("aria-expanded", String(!trace.hidden));
      show.textContent = trace.hidden ? "Show traceback" : "Hide traceback";
    },
  });
  const root = element("div", { class: "wbp-failed", role: "alert", hidden: "" }, words, show, trace);
  return {
    root,
    update() {
      const { error, details } = host.job();
      root.hidden = !error;
      words.textContent = error || "";
      show.hidden = !details;
      if (trace.textContent !== details) trace.textContent = details || "";
    },
  };
}

// What was written last, and where it lies.
function savedElement(host, copied, signal) {
  const words = element("span", { class: "wb-strong" });
  const path = element("code", { class: "wb-mono" });
  const copy = panelButton("Copy path", { signal, onClick: () => copied(host.get("saved_path")) });
  const root = element("div", { class: "wbp-saved wbp-small", role: "status" }, words, " ", path, " ", copy);
  return {
    root,
    update() {
      words.textContent = host.get("saved") || "";
      path.textContent = (host.live && host.get("saved_path")) || "";
      root.hidden = !words.textContent;
      copy.hidden = !path.textContent;
    },
  };
}

// column: that of the toggles. onUntried: called with a group and a value to try.
export function stripElement(host, column, onUntried, signal) {
  const copying = copyingElement(signal);
  const progress = progressElement();
  const parts = [
    settingElement(host),
    actionsElement(host, column, copying.copy, signal),
    newsElement(host, onUntried, signal),
    errorElement(host, signal),
    savedElement(host, copying.copy, signal),
  ];
  const [setting, actions, ...below] = parts.map(({ root }) => root);
  const row = element("div", { class: "wbp-row" }, setting, actions);
  const root = element("div", { class: "wbp-strip" }, row, progress.root, ...below, copying.root);
  return {
    root,
    close: copying.close,
    update() {
      for (const part of parts) part.update();
      progress.update(host.job(), host.status());
    },
  };
}

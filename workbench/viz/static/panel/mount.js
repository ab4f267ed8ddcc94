// Puts the panel into an element: header, toggles, tabs, footer; undoes all when the signal aborts.
import { element, suppressShortcuts } from "../shared/dom.js";
import { prefersDark, watchTheme } from "../shared/theme.js";
import { panesElement, tabsElement } from "./panes.js";
import { runEditor } from "./runs_table.js";
import { runWords, togglesColumn } from "./toggles.js";

const PANEL_VERSION = 1;

function headerElement(host, signal) {
  const { program, about, machine } = host.view;
  const head = element(
    "div",
    { class: "wbp-header" },
    element("span", { class: "wbp-name" }, "Workbench"),
    element("span", { class: "wb-quiet wbp-about" }, [program, about].filter(Boolean).join(", ")),
    element("span", { class: "wb-quiet wbp-small" }, machine),
  );
  if (!host.live) return { root: head, update() {} };
  const report = element("button", { type: "button", class: "wbp-btn" }, "Report");
  report.addEventListener("click", () => host.act("report"), { signal });
  head.append(report);
  return {
    root: head,
    update() {
      report.disabled = !host.live;
    },
  };
}

// one line in place of the column where the panel is narrow
function briefElement(host, column, signal) {
  const name = element("span", { class: "wb-strong" });
  const rate = element("span", { class: "wb-quiet wbp-small" });
  const edit = element("button", { type: "button", class: "wbp-btn", "aria-expanded": "false" }, "Edit toggles");
  const run = element("button", { type: "button", class: "wbp-btn wbp-primary" }, "Run");
  edit.addEventListener("click", () => {
    const open = column.root.classList.toggle("wbp-open");
    edit.setAttribute("aria-expanded", String(open));
    edit.textContent = open ? "Hide toggles" : "Edit toggles";
  }, { signal });
  run.addEventListener("click", () => host.act(host.job().running ? "cancel" : "run"), { signal });
  const words = element("span", { class: "wbp-grow" }, name, " ", rate);
  return {
    root: element("div", { class: "wbp-brief" }, words, edit, run),
    update() {
      const said = host.said();
      name.textContent = said ? said.name : "";
      rate.textContent = said && said.rate ? `${said.rate} steps/s ${said.source}` : "";
      run.textContent = runWords(host);
      run.disabled = !host.live;
    },
  };
}

function contextElement(host, signal) {
  const select = element("select", { "aria-label": "Run shown" });
  select.addEventListener("change", () => host.set("shown", Number(select.value)), { signal });
  const root = element("div", { class: "wbp-context" }, element("label", { class: "wb-quiet" }, "Run shown ", select));
  return {
    root,
    update() {
      const runs = host.get("run_list");
      root.hidden = !runs.length;
      select.replaceChildren(...runs.map(({ number, name }) =>
        element("option", { value: String(number), selected: number === host.get("shown") ? "" : null }, `${number}. ${name}`)));
    },
  };
}

function errorElement(host, signal) {
  const words = element("p", { class: "wbp-error" });
  const trace = element("pre", { class: "wbp-code", hidden: "", tabindex: "0" });
  const show = element("button", { type: "button", class: "wbp-btn", "aria-expanded": "false" }, "Show traceback");
  show.addEventListener("click", () => {
    trace.hidden = !trace.hidden;
    show.setAttribute("aria-expanded", String(!trace.hidden));
    show.textContent = trace.hidden ? "Show traceback" : "Hide traceback";
  }, { signal });
  const again = element("button", { type: "button", class: "wbp-btn" }, "Run again");
  again.addEventListener("click", () => host.act("run"), { signal });
  const root = element("div", { class: "wbp-failed", role: "alert", hidden: "" }, words, show, " ", again, trace);
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

// Clicks and radios inside of the throughput table.
function watchRuns(root, host, signal) {
  root.addEventListener("click", (event) => {
    const row = event.target.closest("[data-run]");
    if (row && !event.target.closest("input")) host.set("shown", Number(row.dataset.run));
    const toggle = event.target.closest("[data-toggle]");
    if (toggle) host.act("toggle", { toggle: toggle.dataset.toggle });
    const untraced = event.target.closest("[data-capture]");
    if (untraced) host.act("capture", { run: Number(untraced.dataset.capture) });
  }, { signal });
  root.addEventListener("change", (event) => {
    if (event.target.name === `wbp-base-${host.id}`) host.set("base", Number(event.target.value));
  }, { signal });
}

// host: what the panel knows and may ask; see hostOfModel and hostOfPage. stacked: all views below
// each other, without tabs, as a report has them.
export function mountPanel(root, host, { signal, stacked = false }) {
  if (host.view.version !== PANEL_VERSION) {
    throw new Error(`Panel format ${host.view.version}; this page reads ${PANEL_VERSION}. Run the cell again.`);
  }
  root.classList.add("wb", "wbp");
  root.classList.toggle("wbp-stacked", stacked);
  suppressShortcuts(root, signal);
  // hosts other than JupyterLab ask no attribute before they take a key for a shortcut of theirs
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
    // what is typed has an undo of its own
    const typing = event.target.closest("input[maxlength], textarea");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
      host.act(event.shiftKey ? "redo" : "undo");
      event.preventDefault();
      event.stopPropagation();
    }
  }, { signal });
  const paint = () => {
    root.dataset.wbTheme = prefersDark() ? "dark" : "light";
  };
  paint();
  watchTheme(signal, paint);

  const header = headerElement(host, signal);
  const column = togglesColumn(host, signal);
  const brief = briefElement(host, column, signal);
  const context = contextElement(host, signal);
  const failed = errorElement(host, signal);
  const links = {
    onNode: (name) => host.set("selected", name || ""),
    onTable: (name) => host.set("selected_table", name || ""),
  };
  const panes = panesElement(host, links, stacked, signal);
  const tabs = tabsElement(host, (key) => host.set("tab", key), signal);
  const status = element("span", { role: "status" });
  const saved = element("span", {});
  const empty = element("p", { class: "wb-sentence wbp-empty" });
  const editor = runEditor(host, signal);
  panes.element("throughput").append(editor.root);
  const body = element("div", { class: "wbp-body" }, context.root, panes.root);
  const right = element("div", { class: "wbp-right" }, failed.root, empty, body);
  if (!stacked) right.prepend(tabs.bar);
  root.replaceChildren(
    header.root,
    brief.root,
    element("div", { class: "wbp-main" }, column.root, right),
    element("div", { class: "wbp-footer" }, status, saved),
  );
  watchRuns(right, host, signal);

  function showTab() {
    const any = host.get("run_list").length > 0;
    empty.hidden = any;
    empty.textContent = "Nothing has run. Run measures this setting; predictions need one run first.";
    body.hidden = !any;
    const now = host.get("tab");
    for (const one of tabs.buttons) {
      const on = one.dataset.tab === now;
      one.setAttribute("aria-selected", String(on));
      one.tabIndex = on ? 0 : -1;
      one.disabled = !any && !on;
    }
    if (!any) return Promise.resolve();
    return stacked ? panes.showAll() : panes.show(now);
  }
  function refresh() {
    for (const part of [header, column, brief, failed, editor]) part.update();
    status.textContent = host.status();
    saved.textContent = host.get("saved") || "";
  }
  function update(what) {
    if (what.includes("view")) column.rebuild();
    refresh();
    if (what.some((one) => ["run_list", "shown", "base", "tab", "edited"].includes(one))) {
      context.update();
      showTab();
    }
    if (what.some((one) => one === "selected" || one === "selected_table")) panes.mark();
  }
  host.listen((changed) => update(changed), signal);
  host.onFlash = (key) => column.flash(key);
  context.update();
  refresh();
  return showTab().then(() => {
    root.dataset.wbReady = "true";
  });
}

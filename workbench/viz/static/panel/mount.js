// Puts the panel into an element: header, strip, toggles, tabs; undoes all when the signal aborts.
import { element, suppressShortcuts } from "../shared/dom.js";
import { prefersDark, watchTheme } from "../shared/theme.js";
import { emptyElement } from "./empty.js";
import { heightElement } from "./height.js";
import { panesElement, tabsElement } from "./panes.js";
import { runEditor } from "./runs_table.js";
import { SETTING_FIELDS, setOption } from "./setting.js";
import { stripElement } from "./strip.js";
import { togglesColumn } from "./toggles.js";

const PANEL_VERSION = 2;
const SHOWS_ANOTHER = ["run_list", "shown", "base", "tab", "learned", "edited"];

function headerElement(host) {
  const { program, about, machine } = host.view;
  return element(
    "div",
    { class: "wbp-header" },
    element("span", { class: "wbp-name" }, "Workbench"),
    element("span", { class: "wb-quiet wbp-about" }, [program, about].filter(Boolean).join(", ")),
    element("span", { class: "wb-quiet wbp-small" }, machine),
  );
}

function contextElement(host, signal) {
  const select = element("select", { "aria-label": "Run shown" });
  select.addEventListener("change", () => host.set("shown", Number(select.value)), { signal });
  const root = element("div", { class: "wbp-context" }, element("label", { class: "wbp-small" }, "Run shown ", select));
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

// Clicks and radios inside of the views.
function watchRuns(root, host, signal) {
  root.addEventListener("click", (event) => {
    const found = (name) => event.target.closest(`[data-${name}]`)?.dataset;
    const row = found("run");
    if (row && !event.target.closest("input")) host.set("shown", Number(row.run));
    const tried = found("tried");
    if (tried) host.set("shown", Number(tried.tried));
    const toggle = found("toggle");
    if (toggle) host.act("try", { toggle: toggle.toggle, run: host.get("shown") });
    const untraced = found("capture");
    if (untraced) host.act("capture", { run: Number(untraced.capture) });
    if (found("peaks")) host.act("peaks");
  }, { signal });
  root.addEventListener("change", (event) => {
    if (event.target.name === `wbp-base-${host.id}`) host.set("base", Number(event.target.value));
  }, { signal });
}

function showTheme(root, signal) {
  const paint = () => {
    root.dataset.wbTheme = prefersDark() ? "dark" : "light";
  };
  paint();
  watchTheme(signal, paint);
}

function keepKeys(root, host, signal) {
  suppressShortcuts(root, signal);
  // hosts other than JupyterLab ask no attribute before they take a key for a shortcut of theirs
  root.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
    // what is typed has an undo of its own
    const typing = event.target.closest("input[maxlength], input[type=search], textarea");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
      host.act(event.shiftKey ? "redo" : "undo");
      event.preventDefault();
      event.stopPropagation();
    }
  }, { signal });
}

function markTabs(buttons, now) {
  for (const one of buttons) {
    const on = one.dataset.tab === now;
    one.setAttribute("aria-selected", String(on));
    one.tabIndex = on ? 0 : -1;
  }
}

// host: what the panel knows and may ask; see hostOfModel and hostOfPage.
export function mountPanel(root, host, { signal }) {
  if (host.view.version !== PANEL_VERSION) {
    throw new Error(`Panel format ${host.view.version}; this page reads ${PANEL_VERSION}. Run the cell again.`);
  }
  root.classList.add("wb", "wbp");
  keepKeys(root, host, signal);
  showTheme(root, signal);
  // As the style sheet has it on paper, but before a frame around it is measured.
  addEventListener("beforeprint", () => root.classList.add("wb-print"), { signal });
  addEventListener("afterprint", () => root.classList.remove("wb-print"), { signal });
  const column = togglesColumn(host, signal);
  const tryIt = (group, value) => {
    setOption(host.view.groups.find(({ key }) => key === group), value, host);
    host.act("run_when_free");
  };
  const strip = stripElement(host, column, tryIt, signal);
  const context = contextElement(host, signal);
  const empty = emptyElement(host, signal);
  const links = {
    onNode: (name) => host.set("selected", name || ""),
    onTable: (name) => host.set("selected_table", name || ""),
  };
  const panes = panesElement(host, links, signal);
  const tabs = tabsElement(host, (key) => host.set("tab", key), signal);
  const line = element("div", { class: "wbp-tabline" }, tabs.bar, context.root);
  const editor = runEditor(host, signal);
  panes.element("throughput").append(editor.root);
  const body = element("div", { class: "wbp-body" }, panes.root);
  const right = element("div", { class: "wbp-right" }, line, empty.root, body);
  root.replaceChildren(headerElement(host), strip.root, element("div", { class: "wbp-main" }, column.root, right));
  root.append(heightElement(root, signal));
  watchRuns(right, host, signal);

  function showTab() {
    const any = host.get("run_list").length > 0;
    body.hidden = line.hidden = !any;
    markTabs(tabs.buttons, host.get("tab"));
    if (!any) return Promise.resolve();
    return panes.show(host.get("tab"));
  }
  function refresh() {
    for (const part of [column, strip, empty, editor]) part.update();
  }
  function update(what) {
    if (what.includes("view")) column.rebuild();
    if (what.some((one) => SETTING_FIELDS.includes(one))) strip.close();
    refresh();
    if (what.some((one) => SHOWS_ANOTHER.includes(one))) {
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

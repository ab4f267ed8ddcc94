// The table of runs: sorted by a column, and what the user calls a run, notes of it, groups it by.
import { element } from "../shared/dom.js";

const ORDERS = { none: "descending", descending: "ascending", ascending: "none" };

function sortRows(table, key, order) {
  const valueOf = (row) => JSON.parse(row.dataset.sort);
  for (const body of table.tBodies) {
    const rows = [...body.rows].filter((row) => row.dataset.sort);
    const sign = order === "descending" ? -1 : 1;
    const compare = (a, b) => {
      const [first, second] = [a, b].map((row) => valueOf(row)[order === "none" ? "run" : key]);
      if (first === null || second === null) return (first === null) - (second === null);
      const apart = typeof first === "number" ? first - second : first.localeCompare(second);
      return (order === "none" ? 1 : sign) * apart || valueOf(a).run - valueOf(b).run;
    };
    body.append(...rows.sort(compare));
  }
}

// Makes the names of columns buttons that sort; how it is sorted is kept in `sorting`.
export function makeSortable(root, sorting, signal) {
  const table = root.querySelector(".wbp-runs");
  if (!table) return;
  const heads = [...table.querySelectorAll("[data-sort-by]")];
  const show = () => {
    for (const head of heads) {
      head.setAttribute("aria-sort", head.dataset.sortBy === sorting.key ? sorting.order : "none");
    }
    if (sorting.key) sortRows(table, sorting.key, sorting.order);
  };
  for (const head of heads) {
    const button = element("button", { type: "button", class: "wbp-sort" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = sorting.key === head.dataset.sortBy ? sorting.order : "none";
      Object.assign(sorting, { key: head.dataset.sortBy, order: ORDERS[before] });
      show();
    }, { signal });
  }
  show();
}

function labeledInput(words, attributes) {
  const input = element(attributes.rows ? "textarea" : "input", attributes);
  return { input, root: element("label", { class: "wbp-word" }, element("span", { class: "wb-quiet" }, words), input) };
}

// Name, group and note of the run that is shown, its deletion, and undo; only a kernel keeps them.
export function runEditor(host, signal) {
  const fields = {
    name: labeledInput("Name", { maxlength: 80, placeholder: "as its setting" }),
    group: labeledInput("Group", { maxlength: 40 }),
    note: labeledInput("Note", { maxlength: 2000, rows: 2 }),
  };
  const act = (words, kind, more) => {
    const button = element("button", { type: "button", class: "wbp-btn" }, words);
    button.addEventListener("click", () => host.act(kind, more()), { signal });
    return button;
  };
  const shown = () => ({ run: host.get("shown") });
  const drop = act("Delete this run", "delete_run", shown);
  const undo = act("Undo", "undo", () => ({}));
  const redo = act("Redo", "redo", () => ({}));
  const summary = element("summary", {});
  const root = element(
    "details",
    { class: "wbp-own", hidden: "" },
    summary,
    element("div", { class: "wbp-words" }, fields.name.root, fields.group.root),
    fields.note.root,
    element("div", { class: "wbp-buttons" }, drop, undo, redo),
  );
  for (const [key, { input }] of Object.entries(fields)) {
    input.addEventListener("change", () => {
      host.act("describe_run", { ...shown(), words: { [key]: input.value } });
    }, { signal });
  }
  return {
    root,
    update() {
      const run = host.get("run_list").find(({ number }) => number === host.get("shown"));
      root.hidden = !host.live || !run;
      if (root.hidden) return;
      summary.textContent = `Name, group and note of run ${run.number}`;
      for (const [key, { input }] of Object.entries(fields)) {
        if (document.activeElement !== input) input.value = run.own[key];
      }
      undo.disabled = !host.get("can_undo");
      redo.disabled = !host.get("can_redo");
    },
  };
}

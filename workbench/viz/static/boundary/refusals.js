// The table of refusals: filtered by reason, searched by name, a row picked for the panel.
import { element } from "../shared/dom.js";
import { rove } from "../shared/focus.js";
import { breakable, reasonMark } from "./box.js";
import { foldElement, headRow, scrolled } from "./tables.js";

const ROWS_SHOWN = 20;

export function matchingRows(view, reasons, query, cause = -1) {
  const wanted = query.trim().toLowerCase();
  const found = [];
  view.rows.forEach((row, place) => {
    if (reasons.size && !reasons.has(row.reason)) return;
    if (cause >= 0 && row.cause !== cause) return;
    const texts = [row.title, row.op, row.blocker, ...row.names];
    if (wanted && !texts.some((text) => text.toLowerCase().includes(wanted))) return;
    found.push(place);
  });
  return found;
}

function rowElement(view, place, selected) {
  const row = view.rows[place];
  const on = place === selected;
  const pick = element(
    "button",
    { type: "button", class: "wbb-link wb-mono", "data-row": place, "aria-pressed": String(on) },
    ...breakable(row.title),
  );
  return element(
    "tr",
    { class: on ? "wbb-on" : null },
    element("th", { scope: "row" }, pick),
    element("td", { class: "wb-mono wbb-op" }, ...breakable(row.op)),
    element("td", { class: "wb-right" }, row.nodes),
    element("td", {}, reasonMark(view, row.reason)),
    element("td", { class: "wb-mono wbb-blocker" }, ...breakable(row.blocker)),
  );
}

export function fillRefusals(parts, state) {
  const { view } = state;
  const found = matchingRows(view, state.reasons, state.query, state.cause);
  const shown = state.all ? found : found.slice(0, ROWS_SHOWN);
  // the row that the panel tells of is always there
  if (state.row >= 0 && found.includes(state.row) && !shown.includes(state.row)) {
    shown.push(state.row);
  }
  parts.rows.replaceChildren(...shown.map((place) => rowElement(view, place, state.row)));
  rove(parts.rows, "[data-row]");
  parts.table.hidden = !found.length;
  parts.found.textContent = foundWords(state, found.length);
  parts.all.hidden = shown.length >= found.length;
  parts.all.textContent = `Show all ${found.length}`;
}

const CAUSES_SHOWN = 8;

function causeRow(view, place) {
  const cause = view.causes[place];
  const pick = element(
    "button",
    { type: "button", class: "wbb-link wb-mono", "data-cause": place, "aria-pressed": "false" },
    ...breakable(cause.title),
  );
  const bar = element("div", { class: "wbb-bar", style: `width: ${(100 * cause.share).toFixed(2)}%` });
  return element(
    "tr",
    { hidden: place >= CAUSES_SHOWN ? "" : null },
    element("th", { scope: "row" }, pick),
    element("td", { class: "wb-mono wbb-op" }, ...breakable(cause.about)),
    element("td", {}, reasonMark(view, cause.reason)),
    element("td", { class: "wbb-plot", "aria-hidden": "true" }, element("div", { class: "wbb-axis" }, bar)),
    element("td", { class: "wb-right" }, cause.behind),
    element("td", { class: "wb-right" }, cause.alone),
    ...(view.flow && view.flow.timed ? [element("td", { class: "wb-right" }, cause.gain ? `◇ ${cause.gain}` : "–")] : []),
  );
}

// what holds back most comes first
export function causesElement(parts, view) {
  const heads = [["Held back by"], ["Op"], ["Reason"], [""], ["Nodes behind it", true], ["Behind it alone", true]];
  const timed = Boolean(view.flow && view.flow.timed);
  if (timed) heads.push(["Step, freed", true]);
  parts.causes = element("tbody", {}, ...view.causes.map((_, place) => causeRow(view, place)));
  const words = "A node counts at everything that it depends on; “alone” are those that run ahead once it is freed." +
    (timed ? " “Step, freed” is how the predicted step changes against all that may run ahead now." : "");
  const more = view.causes.length - CAUSES_SHOWN;
  parts.allCauses = element("button", { type: "button", class: "wb-btn", hidden: more > 0 ? null : "" });
  parts.allCauses.textContent = `Show all ${view.causes.length}`;
  const made = foldElement(
    "What holds them back",
    scrolled(
      element("table", { class: "wb-table wbb-causes" }, element("caption", {}, words), headRow(heads), parts.causes),
    ),
    parts.allCauses,
  );
  if (view.more_causes) {
    made.append(element("p", { class: "wb-quiet" }, `${view.more_causes} more, of few nodes, are not listed.`));
  }
  return made;
}

// marks the chosen cause; of the others as many are shown as were asked for
export function fillCauses(parts, state) {
  parts.causes.querySelectorAll("tr").forEach((row, place) => {
    row.hidden = place >= CAUSES_SHOWN && !state.allCauses && place !== state.cause;
    row.classList.toggle("wbb-on", place === state.cause);
    row.querySelector("[data-cause]").setAttribute("aria-pressed", String(place === state.cause));
  });
  rove(parts.causes, "tr:not([hidden]) [data-cause]");
  parts.allCauses.hidden = state.allCauses || state.view.causes.length <= CAUSES_SHOWN;
}

function foundWords(state, count) {
  const query = state.query.trim();
  if (!count) return query ? `No refused node has “${query}” in its name` : "No refused node";
  return query || state.reasons.size || state.cause >= 0 ? `${count} ${count === 1 ? "row" : "rows"}` : "";
}

function reasonFilter(view, place) {
  const { nodes } = view.reasons[place];
  return element(
    "button",
    { type: "button", class: "wb-btn wbb-filter", "data-reason": place, "aria-pressed": "false" },
    reasonMark(view, place),
    ` ${nodes}`,
  );
}

export function refusalsElement(parts, view) {
  const filters = view.reasons
    .map((reason, place) => (reason.rows ? reasonFilter(view, place) : null))
    .filter(Boolean);
  parts.filters = element(
    "div",
    { class: "wbb-filters", role: "group", "aria-label": "Reasons" },
    ...filters,
  );
  parts.search = element("input", {
    type: "search",
    class: "wb-search",
    placeholder: "Search nodes (/)",
    "aria-label": "Search refused nodes by name, op or blocker",
  });
  parts.found = element("span", { class: "wb-quiet wb-found", role: "status" });
  parts.rows = element("tbody", {});
  const heads = [["Node"], ["Op"], ["Nodes", true], ["Reason"], ["Held back by"]];
  parts.table = scrolled(
    element("table", { class: "wb-table wbb-refusals" }, headRow(heads), parts.rows),
  );
  parts.all = element("button", { type: "button", class: "wb-btn", hidden: "" });
  const made = foldElement(
    "Refused, and why",
    element("div", { class: "wb-tools" }, parts.filters, parts.search, parts.found),
    parts.table,
    parts.all,
  );
  if (view.more_rows) {
    const words = `${view.more_rows} more rows are not listed; explain(node) tells of any node.`;
    made.append(element("p", { class: "wb-quiet" }, words));
  }
  return made;
}

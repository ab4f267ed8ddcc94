// Views that stand beside each other show one selection: what stands for an op has data-node, what
// stands for an embedding table data-table. Without this module both are plain words.
import { focusOn, roveAmong, targetAmong } from "./focus.js";

const LINKED = ["data-node", "data-table"];
// a bar beside its name is a second place, for the pointer alone
const LINK_BUTTONS = LINKED.map((kind) => `[${kind}]:not([aria-hidden] *)`).join();

// Makes buttons of what stands for ops and tables in an element. Each list is one tab stop.
//   onNode, onTable: called with the name that was picked, "" where it was marked before.
//   signal: ends every subscription.
export function linkPane(root, { onNode = () => {}, onTable = () => {}, signal }) {
  const tell = { "data-node": onNode, "data-table": onTable };
  for (const one of root.querySelectorAll(LINK_BUTTONS)) {
    one.setAttribute("role", "button");
    one.setAttribute("aria-pressed", String(one.classList.contains("wb-linked")));
  }
  linkLists(root).forEach(roveAmong);
  const pick = (one) => {
    const kind = LINKED.find((name) => one.hasAttribute(name));
    tell[kind](one.classList.contains("wb-linked") ? "" : one.getAttribute(kind));
  };
  const onClick = ({ target }) => {
    const one = target.closest("[data-node], [data-table]");
    if (one && root.contains(one)) pick(one);
  };
  const onKey = (event) => {
    const { target, key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || !target.matches(LINK_BUTTONS)) return;
    const list = linkLists(root).find((all) => all.includes(target));
    const to = targetAmong(list, target, key);
    if (!to && key !== "Enter" && key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return pick(target);
    target.tabIndex = -1;
    focusOn(to);
  };
  root.addEventListener("click", onClick, { signal });
  root.addEventListener("keydown", onKey, { signal });
}

// Marks what stands for an op, "" for none, and nothing else. Returns whether anything does.
//   reveal: brings the first into view, where its pane is shown at all.
export function markNode(root, name, options) {
  return markLinked(root, "data-node", name, options);
}

// The same of an embedding table.
export function markTable(root, name, options) {
  return markLinked(root, "data-table", name, options);
}

function markLinked(root, kind, name, { reveal = false } = {}) {
  const found = [];
  for (const one of root.querySelectorAll(`[${kind}]`)) {
    const on = name !== "" && one.getAttribute(kind) === name;
    one.classList.toggle("wb-linked", on);
    if (one.hasAttribute("aria-pressed")) one.setAttribute("aria-pressed", String(on));
    if (on) found.push(one);
  }
  linkLists(root).forEach(roveAmong);
  const shown = reveal && found.find((one) => one.getClientRects().length);
  if (shown) shown.scrollIntoView({ block: "nearest", inline: "nearest" });
  return found.length > 0;
}

// the buttons of each list or table; those of none are one more
function linkLists(root) {
  const lists = new Map();
  for (const one of root.querySelectorAll("[data-node][role], [data-table][role]")) {
    const list = one.closest("table, ul, ol") || root;
    lists.set(list, [...(lists.get(list) || []), one]);
  }
  return [...lists.values()];
}

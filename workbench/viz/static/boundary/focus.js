// Lists with one tab stop: arrows move inside, Tab leaves.
export const BOX_KEY_WORDS =
  "Arrow keys move between boxes, Enter tells of one, Space lets it run ahead or stay. On the line " +
  "arrow left and right move it.";
export const BOX_KEY_HINTS = [
  [["↑", "↓"], "boxes"],
  [["Enter"], "why"],
  [["Space"], "ahead or not"],
  [["←", "→"], "on the line: move it"],
  [["/"], "search"],
];
const MOVES = { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

// leaves one of the matching elements in the tab order: the focused, the pressed, else the first
export function rove(holder, selector) {
  const all = [...holder.querySelectorAll(selector)];
  const pressed = all.find((one) => one.getAttribute("aria-pressed") === "true");
  const kept = all.find((one) => one === document.activeElement) || pressed || all[0];
  for (const one of all) one.tabIndex = one === kept ? 0 : -1;
}

// the element to go to from `from` by a key, or null
export function moveTarget(holder, selector, from, key) {
  const all = [...holder.querySelectorAll(selector)];
  const at = all.indexOf(from);
  if (at < 0 || !(key in MOVES)) return null;
  return all[Math.max(0, Math.min(all.length - 1, at + MOVES[key]))];
}

export function focusOn(one) {
  one.tabIndex = 0;
  one.focus();
}

// Lists with one tab stop: arrows move inside, Tab leaves.
export const BOX_KEY_WORDS =
  "Arrow up and down move between boxes, Enter tells why, arrow right opens a box, arrow left or " +
  "Escape closes it.";
export const BOX_KEY_HINTS = [
  [["↑", "↓"], "boxes"],
  [["Enter"], "why"],
  [["→"], "open"],
  [["←"], "close"],
  [["/"], "search"],
];
const MOVES = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity };

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

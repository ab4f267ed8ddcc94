// Lists with one tab stop: arrows move inside, Tab leaves.
const MOVES = { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1, Home: -Infinity, End: Infinity };

// leaves one of these elements in the tab order: the focused, the pressed, else the first
export function roveAmong(all) {
  const pressed = all.find((one) => one.getAttribute("aria-pressed") === "true");
  const kept = all.find((one) => one === document.activeElement) || pressed || all[0];
  for (const one of all) one.tabIndex = one === kept ? 0 : -1;
}

// the element to go to from `from` by a key, or null
export function targetAmong(all, from, key) {
  const at = all.indexOf(from);
  if (at < 0 || !(key in MOVES)) return null;
  return all[Math.max(0, Math.min(all.length - 1, at + MOVES[key]))];
}

export function rove(holder, selector) {
  roveAmong([...holder.querySelectorAll(selector)]);
}

export function moveTarget(holder, selector, from, key) {
  return targetAmong([...holder.querySelectorAll(selector)], from, key);
}

export function focusOn(one) {
  one.tabIndex = 0;
  one.focus();
}

// A number that no other view of the page has. A notebook loads a script once for each widget, so
// what a script counts is not enough.
const COUNTED = Symbol.for("workbench.counted");

export function pageNumber() {
  globalThis[COUNTED] = (globalThis[COUNTED] || 0) + 1;
  return globalThis[COUNTED];
}

// Search by node name. Waits, runs and the critical path's lane have no node: they never match.
import { duration, integer } from "../../shared/format.js";
import { WAIT } from "../draw/decode.js";

export function findMatches(model, query) {
  const wanted = query.trim().toLowerCase();
  if (!wanted) return null;
  const matches = new Uint8Array(model.names.length);
  model.names.forEach((name, k) => {
    if (k < model.pathNames && model.nameFamily[k] < WAIT && name.toLowerCase().includes(wanted)) matches[k] = 1;
  });
  return matches;
}

export function matchTotals(model, matches) {
  let count = 0;
  let total = 0;
  for (let i = 0; i < model.name.length; i++) {
    if (!matches[model.name[i]]) continue;
    count++;
    total += model.dur[i];
  }
  return { count, total };
}

export function matchWords(model, matches, query) {
  if (!matches) return "";
  const { count, total } = matchTotals(model, matches);
  if (!count) return `No op has “${query.trim()}” in its name`;
  const spans = `${integer(count)} ${count === 1 ? "span" : "spans"}`;
  return model.steps ? `${spans}, ${duration(total / model.steps)} a step` : spans;
}

// the match that starts next after t in any lane; from the start again behind the last
export function nextMatch(model, matches, t) {
  let next = -1;
  let first = -1;
  for (let i = 0; i < model.name.length; i++) {
    if (!matches[model.name[i]]) continue;
    const at = model.start[i];
    if (first < 0 || at < model.start[first]) first = i;
    if (at > t && (next < 0 || at < model.start[next])) next = i;
  }
  return next < 0 ? first : next;
}

// The window [from, to] in ns, and the ruler over it. Pure: no state, no drawing.
import { fixed } from "../../shared/format.js";

export const GUTTER = 104;
const MARGIN = 0.02;
export const MIN_WINDOW = 1000;

export function placeWindow(from, width, total) {
  const wide = Math.min(total * (1 + 2 * MARGIN), Math.max(MIN_WINDOW, width));
  const low = -total * MARGIN;
  const at = Math.max(low, Math.min(total * (1 + MARGIN) - wide, from));
  return [at, at + wide];
}

// the moment `at` keeps its place on the screen
export function zoomWindow([from, to], factor, at, total) {
  const limit = total * (1 + 2 * MARGIN);
  const width = Math.min(limit, Math.max(Math.min(MIN_WINDOW, limit), (to - from) * factor));
  const share = (at - from) / (to - from);
  return placeWindow(at - share * width, width, total);
}

export function panWindow([from, to], share, total) {
  return placeWindow(from + (to - from) * share, to - from, total);
}

export function fitWindow(start, end, margin, total) {
  const width = Math.max(MIN_WINDOW / 4, end - start);
  const padded = Math.max(MIN_WINDOW, width * (1 + 2 * margin));
  return placeWindow((start + end - padded) / 2, padded, total);
}

// Ticks at round moments, at least `apart` pixels from each other. Labels are exact: the step is
// an integer of ns, and as many decimals are written as it needs.
export function rulerTicks([from, to], pixels, apart = 90) {
  const [unit, scale] = to - from >= 2e10 ? ["s", 1e9] : ["ms", 1e6];
  const least = ((to - from) / Math.max(1, pixels)) * apart;
  let step = 1;
  while (step < least) step *= String(step)[0] === "2" ? 2.5 : 2;
  let decimals = 0;
  while (decimals < 9 && (step * 10 ** decimals) % scale) decimals++;
  const ticks = [];
  for (let t = Math.max(0, Math.ceil(from / step)) * step; t <= to; t += step) {
    ticks.push({ t, label: fixed(t, scale, decimals) });
  }
  return { unit, ticks };
}

// first index in [low, high) where test holds, high if nowhere; test must turn true only once
export function bisect(low, high, test) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

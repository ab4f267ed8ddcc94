// The critical path on the lanes: its ops keep their color and have a foot of ink, others fade, and
// links join one thread to the next.
import { WAIT, laneOf, pathOrder } from "./decode.js";
import { GUTTER, bisect } from "./scales.js";

export const OFF_PATH = 0.5;
const FOOT = 2;
const LINK_PX_PER_MS = 28;

export function lightsPath(s) {
  return s.flags.path && s.model.critical !== null;
}

// whether a span of a family fades: waits, runs and the lane of the path itself never do
export function leavesPath(s, row, family, onPath) {
  return lightsPath(s) && family < WAIT && row.lane.kind !== "critical" && !onPath;
}

export function drawFoot(ctx, s, row, x, width) {
  ctx.fillStyle = s.theme.ink;
  ctx.fillRect(x, row.y + row.height - FOOT, width, FOOT);
}

// of the merged columns: neighbors become one line
export function drawPathFeet(ctx, s, row, { pixels, path }) {
  for (let p = 0; p < pixels; p++) {
    if (!path[p]) continue;
    const from = p;
    while (p < pixels && path[p]) p++;
    drawFoot(ctx, s, row, GUTTER + from, p - from);
  }
}

// where there is room, from the end of an op to the start of the next one on another lane
export function drawPathLinks(ctx, s) {
  const { model, layout } = s;
  if (s.scale * 1e6 < LINK_PX_PER_MS) return;
  const order = pathOrder(model);
  const { start, dur } = model;
  const first = bisect(0, order.length, (k) => start[order[k]] >= s.window[0]);
  ctx.strokeStyle = s.theme.ink;
  ctx.lineWidth = 1;
  ctx.beginPath();
  for (let k = Math.max(1, first); k < order.length; k++) {
    const [before, after] = [order[k - 1], order[k]];
    const above = layout.of[laneOf(model, before)];
    const below = layout.of[laneOf(model, after)];
    if (above !== below) {
      ctx.moveTo(s.x(start[before] + dur[before]), above.y + above.height - 1);
      ctx.lineTo(s.x(start[after]), below.y + below.height - 1);
    }
    if (start[after] > s.window[1]) break;
  }
  ctx.stroke();
}

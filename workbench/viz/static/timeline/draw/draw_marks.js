// What the user marks over the lanes: a stretch with its length, a box to zoom into, a shared cursor.
import { duration } from "../../shared/format.js";
import { setFont, textWidth } from "./labels.js";
import { LANES_TOP, STEP_ROW } from "./layout.js";
import { GUTTER } from "./scales.js";

const LABEL_TALL = 16;

export function drawMarks(ctx, s) {
  if (s.range) drawStretch(ctx, s, s.range, s.theme.acc);
  if (s.box) drawStretch(ctx, s, s.box, s.theme.ink2);
  if (s.cursor !== null) drawCursor(ctx, s);
}

function drawStretch(ctx, s, [from, to], color) {
  const [left, right] = [s.x(from), s.x(to)];
  if (right < GUTTER || left > s.width) return;
  ctx.fillStyle = color;
  ctx.globalAlpha = 0.12;
  ctx.fillRect(left, LANES_TOP - 3, right - left, s.layout.height);
  ctx.globalAlpha = 1;
  for (const x of [left, right]) ctx.fillRect(Math.round(x), LANES_TOP - 3, 1, s.layout.height);
  drawLength(ctx, s, Math.max(left, GUTTER), Math.min(right, s.width), duration(to - from), color);
}

// in the row of the steps, over the middle of what is seen of the stretch
function drawLength(ctx, s, left, right, words, color) {
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  setFont(ctx, s.theme, 11, true);
  const wide = textWidth(ctx, s.theme, words) + 8;
  const x = Math.max(GUTTER, Math.min(s.width - wide, (left + right - wide) / 2));
  const y = STEP_ROW + 2;
  ctx.fillStyle = s.theme.bg;
  ctx.fillRect(x, y, wide, LABEL_TALL);
  ctx.strokeStyle = color;
  ctx.lineWidth = 1;
  ctx.strokeRect(x + 0.5, y + 0.5, wide - 1, LABEL_TALL - 1);
  ctx.fillStyle = s.theme.ink;
  ctx.fillText(words, x + 4, y + LABEL_TALL / 2);
}

function drawCursor(ctx, s) {
  const x = Math.round(s.x(s.cursor));
  if (x < GUTTER || x > s.width) return;
  ctx.fillStyle = s.theme.ink;
  ctx.globalAlpha = 0.7;
  ctx.fillRect(x, STEP_ROW, 1, s.layout.height);
  ctx.globalAlpha = 1;
}

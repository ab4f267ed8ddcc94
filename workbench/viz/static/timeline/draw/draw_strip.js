// The whole trace above the ruler: families stacked by the share of threads that is busy, waits
// hatched over it, what is outside of the window faded.
import { hatchFill } from "./colors.js";
import { setFont } from "./labels.js";
import { STRIP_HEIGHT } from "./layout.js";
import { GUTTER } from "./scales.js";

const STRIP_Y = 6;
const STRIP_TALL = 26;
const GRIP_REACH = 6;

function paintStrip(theme, model, width, ratio) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = STRIP_HEIGHT * ratio;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  const families = theme.fill.length;
  const bins = model.stripWait.length;
  const pixels = Math.floor(width * (model.duration / model.whole));
  const hatch = hatchFill(g, theme);
  for (let p = 0; p < pixels && bins; p++) {
    const low = Math.floor((p * bins) / pixels);
    const high = Math.max(low + 1, Math.floor(((p + 1) * bins) / pixels));
    let y = STRIP_Y + STRIP_TALL;
    for (let f = 0; f < families; f++) {
      let busy = 0;
      for (let bin = low; bin < high; bin++) busy += model.stripBusy[bin * families + f];
      const tall = (busy / (high - low) / 255) * STRIP_TALL;
      if (tall < 0.1) continue;
      g.fillStyle = theme.mark[f];
      g.fillRect(p, y - tall, 1, tall);
      y -= tall;
    }
    let wait = 0;
    for (let bin = low; bin < high; bin++) wait += model.stripWait[bin];
    if (wait / (high - low) < 96) continue;
    g.fillStyle = hatch;
    g.fillRect(p, STRIP_Y, 1, STRIP_TALL);
  }
  return canvas;
}

function stripEdges(s) {
  const scale = (s.width - GUTTER) / s.model.whole;
  const left = Math.min(s.width - 6, Math.max(GUTTER, GUTTER + s.window[0] * scale));
  return [left, Math.max(left + 6, Math.min(s.width, GUTTER + s.window[1] * scale))];
}

export function drawStrip(ctx, s) {
  const { theme, model } = s;
  const width = s.width - GUTTER;
  const key = `${width}:${s.ratio}:${model.pending}`;
  if (theme.stripKey !== key) {
    theme.strip = paintStrip(theme, model, width, s.ratio);
    theme.stripKey = key;
  }
  ctx.drawImage(theme.strip, GUTTER, 0, width, STRIP_HEIGHT);
  const [left, right] = stripEdges(s);
  ctx.fillStyle = theme.bg;
  ctx.globalAlpha = 0.62;
  ctx.fillRect(GUTTER, 2, Math.max(0, left - GUTTER), STRIP_HEIGHT - 3);
  ctx.fillRect(right, 2, Math.max(0, s.width - right), STRIP_HEIGHT - 3);
  ctx.globalAlpha = 1;
  ctx.save();
  ctx.beginPath();
  ctx.rect(GUTTER - 1, 0, width + 1, STRIP_HEIGHT);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = theme.acc;
  ctx.lineWidth = 1.5;
  ctx.strokeRect(left, STRIP_Y - 3, right - left, STRIP_TALL + 4);
  for (const x of [left, right]) ctx.fillRect(x - 2, STRIP_Y + 5, 4, 14);
  ctx.restore();
  setFont(ctx, theme, 12);
  ctx.fillStyle = theme.ink;
  ctx.fillText("Whole trace", 12, STRIP_Y + STRIP_TALL / 2);
}

// what a press in the strip takes hold of: "from", "to" or the whole window
export function stripGrip(s, x) {
  const [left, right] = stripEdges(s);
  if (Math.abs(x - left) <= GRIP_REACH && Math.abs(x - left) <= Math.abs(x - right)) return "from";
  if (Math.abs(x - right) <= GRIP_REACH) return "to";
  return "window";
}

// Spans, gaps, waits and buffers of the lanes.
import { duration, integer } from "../../shared/format.js";
import { familyFill, hatchFill } from "./colors.js";
import { RUN, WAIT, stepOf } from "./decode.js";
import { OFF_PATH, drawFoot, drawPathFeet, leavesPath, lightsPath } from "./draw_path.js";
import { setFont, shortName, shorten, textWidth } from "./labels.js";
import { columnAt, mergeLane } from "./lod.js";
import { GUTTER, bisect } from "./scales.js";

const PATTERN_MIN = 14;
const CODE_MIN = 22;
const NAME_MIN = 56;
const WAIT_NAME_MIN = 52;
const WAIT_TIME_MIN = 130;
const RUN_OPS_MIN = 150;
const GAP_MIN = 64;
const DIMMED = 0.18;

// whether the legend keeps other families alone
function isFiltered(s, family) {
  return s.kept !== null && !s.kept[family];
}

function drawColumns(ctx, s, row, merged) {
  const { pixels } = merged;
  // Neighbors that look alike become one rectangle; of height 0 it is none.
  let from = 0;
  let tall = 0;
  let fill = "";
  let alpha = 1;
  const flush = (upTo) => {
    if (!tall) return;
    ctx.globalAlpha = alpha;
    ctx.fillStyle = fill;
    ctx.fillRect(GUTTER + from, row.y + row.height - tall, upTo - from, tall);
    tall = 0;
  };
  for (let p = 0; p < pixels; p++) {
    const { family, share, faint } = columnAt(merged, p, s.kept);
    if (family < 0) {
      flush(p);
      continue;
    }
    const off = leavesPath(s, row, family, merged.path[p]);
    const shade = faint || (s.matches && !merged.hit[p]) ? DIMMED : off ? OFF_PATH : 1;
    const nowAlpha = shade * (family === RUN ? 0.09 : 1);
    const nowFill = family === RUN ? s.theme.ink : family === WAIT ? s.theme.ink2 : s.theme.mark[family];
    const nowTall = Math.max(3, Math.round(share * row.height));
    if (tall === nowTall && fill === nowFill && alpha === nowAlpha) continue;
    flush(p);
    from = p;
    tall = nowTall;
    fill = nowFill;
    alpha = nowAlpha;
  }
  flush(pixels);
  ctx.globalAlpha = 1;
  if (lightsPath(s)) drawPathFeet(ctx, s, row, merged);
}

function drawWait(ctx, s, row, i, x, width) {
  const { theme, model } = s;
  const dimmed = s.matches || isFiltered(s, WAIT);
  ctx.globalAlpha = dimmed ? DIMMED : 1;
  ctx.fillStyle = hatchFill(ctx, theme);
  ctx.fillRect(x, row.y, width, row.height);
  ctx.strokeStyle = theme.ink2;
  ctx.lineWidth = 1;
  if (width > 3) ctx.strokeRect(x + 0.5, row.y + 0.5, width - 1, row.height - 1);
  ctx.globalAlpha = 1;
  if (width < WAIT_NAME_MIN) return;
  const name = model.names[model.name[i]];
  const left = Math.max(x, GUTTER);
  const room = Math.min(x + width, s.width) - left - 12;
  setFont(ctx, theme, 11);
  const words = width >= WAIT_TIME_MIN ? `${name} ${duration(model.dur[i])}` : name;
  const text = shorten(ctx, theme, words, room);
  if (!text) return;
  ctx.fillStyle = theme.bg;
  ctx.fillRect(left + 4, row.y + 3, textWidth(ctx, theme, text) + 6, row.height - 6);
  ctx.fillStyle = theme.ink;
  ctx.fillText(text, left + 7, row.y + row.height / 2);
}

function drawRun(ctx, s, row, i, x, width) {
  const { theme, model } = s;
  ctx.fillStyle = theme.ink;
  ctx.globalAlpha = 0.09;
  ctx.fillRect(x, row.y, width > 4 ? width - 1 : width, row.height);
  ctx.globalAlpha = 1;
  const k = stepOf(model, i);
  let words = `run step ${model.step[i]}`;
  if (k >= 0 && width >= RUN_OPS_MIN) words += `, ${integer(model.stepOps[k])} ops`;
  const left = Math.max(x, GUTTER);
  setFont(ctx, theme, 12);
  const text = shorten(ctx, theme, words, Math.min(x + width, s.width) - left - 12);
  if (text) ctx.fillText(text, left + 6, row.y + row.height / 2);
}

function drawOp(ctx, s, row, i, x, width) {
  const { theme, model } = s;
  const family = model.family[i];
  const marked = (!s.matches || s.matches[model.name[i]] === 1) && !isFiltered(s, family);
  const shown = width > 4 ? width - 1 : width;
  const off = leavesPath(s, row, family, model.critical && model.critical[i]);
  ctx.globalAlpha = !marked ? DIMMED : off ? OFF_PATH : 1;
  ctx.fillStyle = width >= PATTERN_MIN ? familyFill(ctx, theme, family) : theme.mark[family];
  ctx.fillRect(x, row.y, shown, row.height);
  if (theme.forced && width >= PATTERN_MIN) {
    ctx.strokeStyle = theme.text[family];
    ctx.lineWidth = 1;
    ctx.strokeRect(x + 0.5, row.y + 0.5, shown - 1, row.height - 1);
  }
  ctx.globalAlpha = 1;
  if (width >= CODE_MIN && marked) drawOpLabel(ctx, s, row, i, x, shown, width, off);
  if (lightsPath(s) && model.critical[i]) drawFoot(ctx, s, row, x, Math.max(1, shown));
}

function drawOpLabel(ctx, s, row, i, x, shown, width, off) {
  const { theme, model } = s;
  const family = model.family[i];
  const left = Math.max(x, GUTTER);
  const room = Math.min(x + shown, s.width) - left - 6;
  setFont(ctx, theme, 11);
  const name = shortName(model.names[model.name[i]]);
  const code = model.header.families[family][1];
  const text = shorten(ctx, theme, width >= NAME_MIN ? name : code, room);
  if (!text) return;
  if (theme.kinds[family] !== "plain" && !off) {
    ctx.fillStyle = theme.fill[family];
    const wide = Math.min(room + 4, textWidth(ctx, theme, text) + 4);
    ctx.fillRect(left + 2, row.y + 3, wide, row.height - 6);
  }
  // on a fill that is half gone the text of the family would be too faint
  ctx.fillStyle = off ? theme.ink : theme.text[family];
  ctx.fillText(text, left + 4, row.y + row.height / 2);
}

function drawGaps(ctx, s, row, merged) {
  const { theme, model } = s;
  const { start, dur, gap } = model;
  setFont(ctx, theme, 11);
  // secondary text would be too faint on the tint of a step
  ctx.fillStyle = theme.ink;
  ctx.globalAlpha = 0.7;
  for (const i of merged.gaps) {
    const left = Math.max(s.x(start[i - 1] + dur[i - 1]), GUTTER);
    const right = Math.min(s.x(start[i]), s.width);
    const words = model.header.gapNames[gap[i]];
    if (textWidth(ctx, theme, words) <= right - left - 12) {
      ctx.fillText(words, left + 6, row.y + row.height / 2);
    }
  }
  ctx.globalAlpha = 1;
}

export function drawSpans(ctx, s, row, into) {
  const { model } = s;
  const critical = lightsPath(s) ? model.critical : null;
  const merged = mergeLane(model, row.lane, s.window, into, s.matches, GAP_MIN, critical);
  drawColumns(ctx, s, row, merged);
  if (s.flags.gaps) drawGaps(ctx, s, row, merged);
  for (const i of merged.singles) {
    const x = s.x(model.start[i]);
    const width = model.dur[i] * s.scale;
    const family = model.family[i];
    const draw = family === WAIT ? drawWait : family === RUN ? drawRun : drawOp;
    draw(ctx, s, row, i, x, width);
  }
}

// least and most items held in each pixel of the window
function bufferColumns(s, lane, pixels) {
  const { model } = s;
  const least = new Float64Array(pixels).fill(Infinity);
  const most = new Float64Array(pixels).fill(-Infinity);
  const last = lane.first + lane.count;
  let k = bisect(lane.first, last, (i) => model.occTime[i] >= s.window[0]);
  let held = k > lane.first ? model.occCount[k - 1] : lane.held;
  for (let p = 0; p < pixels; p++) {
    const ends = s.window[0] + (p + 1) / s.scale;
    least[p] = most[p] = held;
    for (; k < last && model.occTime[k] < ends; k++) {
      held = model.occCount[k];
      if (held < least[p]) least[p] = held;
      if (held > most[p]) most[p] = held;
    }
  }
  return { least, most };
}

// one path while its corners can be told apart, else a bar per pixel from least to most
export function drawBuffer(ctx, s, row) {
  const { theme, model } = s;
  const { lane } = row;
  const base = row.y + row.height;
  const level = (n) => base - (Math.min(n, lane.capacity) / lane.capacity) * (row.height - 4);
  ctx.fillStyle = theme.line2;
  for (let n = 1; n <= lane.capacity && lane.capacity <= 8; n++) {
    ctx.fillRect(GUTTER, Math.round(level(n)), 4, 1);
  }
  ctx.strokeStyle = ctx.fillStyle = theme.ink2;
  const last = lane.first + lane.count;
  const first = bisect(lane.first, last, (i) => model.occTime[i] >= s.window[0]);
  const behind = bisect(first, last, (i) => model.occTime[i] > s.window[1]);
  const left = Math.max(GUTTER, s.x(0));
  const right = Math.min(s.width, s.x(model.duration));
  if (behind - first > (right - left) / 2) drawCrowded(ctx, s, lane, level, base, left, right);
  else drawStairs(ctx, s, lane, level, base, [first, behind], left, right);
}

function drawStairs(ctx, s, lane, level, base, [first, behind], left, right) {
  const { occTime, occCount } = s.model;
  const line = new Path2D();
  let held = first > lane.first ? occCount[first - 1] : lane.held;
  line.moveTo(left, level(held));
  for (let k = first; k < behind; k++) {
    const x = s.x(occTime[k]);
    line.lineTo(x, level(held));
    held = occCount[k];
    line.lineTo(x, level(held));
  }
  line.lineTo(right, level(held));
  ctx.lineWidth = 1.5;
  ctx.stroke(line);
  line.lineTo(right, base);
  line.lineTo(left, base);
  ctx.globalAlpha = 0.22;
  ctx.fill(line);
  ctx.globalAlpha = 1;
}

function drawCrowded(ctx, s, lane, level, base, left, right) {
  const { least, most } = bufferColumns(s, lane, Math.max(1, Math.floor(s.width - GUTTER)));
  const from = Math.floor(left - GUTTER);
  const behind = Math.min(most.length, Math.ceil(right - GUTTER));
  ctx.globalAlpha = 0.22;
  eachRun(from, behind, (p, q) => most[p] === most[q], (p, wide) => {
    const top = level(most[p]);
    ctx.fillRect(GUTTER + p, top, wide, base - top);
  });
  ctx.globalAlpha = 1;
  const alike = (p, q) => most[p] === most[q] && least[p] === least[q];
  eachRun(from, behind, alike, (p, wide) => {
    const top = level(most[p]);
    ctx.fillRect(GUTTER + p, top - 0.75, wide, level(least[p]) - top + 1.5);
  });
}

// Calls back with the first of neighbors that are alike, and how many they are.
function eachRun(from, behind, alike, draw) {
  for (let p = from; p < behind; ) {
    const first = p;
    while (p < behind && alike(first, p)) p++;
    draw(first, p - first);
  }
}

export function drawPending(ctx, s, row) {
  const { theme } = s;
  ctx.globalAlpha = 0.4;
  ctx.fillStyle = hatchFill(ctx, theme);
  ctx.fillRect(GUTTER, row.y, s.width - GUTTER, row.height);
  ctx.globalAlpha = 1;
  setFont(ctx, theme, 11);
  const words = "loading detail";
  if (s.width - GUTTER < 80) return;
  ctx.fillStyle = theme.bg;
  ctx.fillRect(GUTTER + 4, row.y + 3, textWidth(ctx, theme, words) + 6, row.height - 6);
  ctx.fillStyle = theme.ink2;
  ctx.fillText(words, GUTTER + 7, row.y + row.height / 2);
}

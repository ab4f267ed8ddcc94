// One frame: strip, ruler, step row, lanes; and above it, on its own canvas, what follows the
// pointer: flows and the selection.
import { duration, integer } from "../../shared/format.js";
import { laneOf, stepOf } from "./decode.js";
import { drawBuffer, drawPending, drawSpans } from "./draw_lanes.js";
import { drawMarks } from "./draw_marks.js";
import { drawPathLinks, lightsPath } from "./draw_path.js";
import { drawStrip } from "./draw_strip.js";
import { setFont, shorten, textWidth } from "./labels.js";
import { LANES_TOP, STEP_ROW, STRIP_HEIGHT } from "./layout.js";
import { newColumns } from "./lod.js";
import { GUTTER, bisect, rulerTicks } from "./scales.js";

const STEP_LABEL_MIN = 42;
const STEP_TIME_MIN = 110;
const STEP_LINE_MIN = 4;
const FLOW_STEP_MIN = 36;
const FLOW_BEND_MIN = 18;
const SENDS_MAX = 1000;

export function drawFrame(ctx, s) {
  const { theme, layout } = s;
  const { height } = layout;
  ctx.setTransform(s.ratio, 0, 0, s.ratio, 0, 0);
  ctx.wbFont = "";
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  ctx.fillStyle = theme.bg;
  ctx.fillRect(0, 0, s.width, height);
  drawStrip(ctx, s);
  ctx.save();
  ctx.beginPath();
  ctx.rect(GUTTER, STRIP_HEIGHT, s.width - GUTTER, height);
  ctx.clip();
  drawSteps(ctx, s);
  const unit = drawRuler(ctx, s);
  const merged = newColumns(Math.max(1, Math.floor(s.width - GUTTER)));
  for (const row of layout.rows) {
    if (s.model.pending) drawPending(ctx, s, row);
    else if (row.lane.kind === "buffer") drawBuffer(ctx, s, row);
    else drawSpans(ctx, s, row, merged);
  }
  if (lightsPath(s)) drawPathLinks(ctx, s);
  ctx.restore();
  drawGutter(ctx, s, unit);
}

function drawGutter(ctx, s, unit) {
  const { theme, layout } = s;
  setFont(ctx, theme, 12);
  ctx.fillStyle = theme.ink2;
  ctx.fillText(unit, 12, STEP_ROW - 10);
  ctx.fillStyle = theme.line;
  ctx.fillRect(GUTTER - 1, STRIP_HEIGHT, 1, layout.height - STRIP_HEIGHT);
  for (const y of [STRIP_HEIGHT, STEP_ROW, ...layout.lines]) ctx.fillRect(0, y, s.width, 1);
  for (const { lane, y, height } of layout.rows) {
    setFont(ctx, theme, 12);
    ctx.fillStyle = theme.ink;
    const room = GUTTER - 12 - (lane.kind === "buffer" ? 22 : 8);
    const middle = y + height / 2;
    const above = lane.detail ? 7 : 0;
    ctx.fillText(shorten(ctx, theme, lane.label, room), 12, middle - above);
    setFont(ctx, theme, 11);
    ctx.fillStyle = theme.ink2;
    if (lane.detail) ctx.fillText(shorten(ctx, theme, lane.detail, room), 12, middle + 8);
    if (lane.kind !== "buffer") continue;
    ctx.textAlign = "right";
    ctx.fillText(integer(lane.capacity), GUTTER - 6, y + 5);
    ctx.fillText("0", GUTTER - 6, y + height - 3);
    ctx.textAlign = "left";
  }
}

function drawRuler(ctx, s) {
  const { theme } = s;
  const { unit, ticks } = rulerTicks(s.window, s.width - GUTTER);
  setFont(ctx, theme, 11);
  ctx.fillStyle = theme.ink2;
  for (const { t, label } of ticks) {
    const x = Math.round(s.x(t));
    ctx.fillRect(x, STEP_ROW - 5, 1, 5);
    if (x + 6 + textWidth(ctx, theme, label) < s.width) ctx.fillText(label, x + 4, STEP_ROW - 10);
  }
  return unit;
}

function drawSteps(ctx, s) {
  const { model, theme, layout } = s;
  const [from, to] = s.window;
  const first = bisect(0, model.steps, (k) => model.stepEnd[k] >= from);
  for (let k = first; k < model.steps && model.stepStart[k] <= to; k++) {
    const x = s.x(model.stepStart[k]);
    const width = (model.stepEnd[k] - model.stepStart[k]) * s.scale;
    if (width < STEP_LINE_MIN && k !== s.step) continue;
    if (model.stepNumber[k] % 2) {
      ctx.fillStyle = theme.ink;
      ctx.globalAlpha = 0.025;
      ctx.fillRect(x, LANES_TOP - 2, width, layout.height);
      ctx.globalAlpha = 1;
    }
    ctx.fillStyle = theme.line;
    ctx.fillRect(Math.round(x), STEP_ROW, 1, layout.height);
    drawStepLabel(ctx, s, k, x, width);
  }
}

function drawStepLabel(ctx, s, k, x, width) {
  const { model, theme } = s;
  const selected = k === s.step;
  if (selected) {
    ctx.fillStyle = theme.acc;
    ctx.fillRect(x + 1, STEP_ROW, Math.max(1, width - 1), 2);
  }
  const left = Math.max(x, GUTTER) + 6;
  // clients' steps overlap
  const next = k + 1 < model.steps ? s.x(model.stepStart[k + 1]) : Infinity;
  const right = Math.min(x + width, next, s.width) - 4;
  if (right - left < STEP_LABEL_MIN) return;
  let words = `step ${model.stepNumber[k]}`;
  if (width > STEP_TIME_MIN) words += `, ${duration(model.stepEnd[k] - model.stepStart[k])}`;
  setFont(ctx, theme, 11, selected);
  ctx.fillStyle = selected ? theme.ink : theme.ink2;
  ctx.fillText(shorten(ctx, theme, words, right - left), left, STEP_ROW + 10);
}

export function drawOverlay(ctx, s) {
  ctx.setTransform(s.ratio, 0, 0, s.ratio, 0, 0);
  ctx.wbFont = "";
  ctx.clearRect(0, 0, s.width, s.layout.height);
  if (s.model.pending) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(GUTTER, LANES_TOP - 3, s.width - GUTTER, s.layout.height);
  ctx.clip();
  if (s.flags.flows) {
    drawFlows(ctx, s);
    drawSends(ctx, s);
  }
  if (s.selected >= 0) drawSelection(ctx, s);
  ctx.restore();
  ctx.save();
  ctx.beginPath();
  ctx.rect(GUTTER, STEP_ROW, s.width - GUTTER, s.layout.height);
  ctx.clip();
  drawMarks(ctx, s);
  ctx.restore();
}

// flows of the item that a span belongs to: of its stage run, or of its step
function flowsOf(model, i) {
  if (i < 0) return [];
  const lane = model.lanes[laneOf(model, i)];
  if (lane.kind !== "prefetch") return model.flowOfStep.get(model.step[i]) || [];
  const flow = model.flowOfRun.get(`${lane.track}:${model.step[i]}`);
  return flow === undefined ? [] : [flow];
}

function drawFlows(ctx, s) {
  const { model, layout, theme } = s;
  if (model.typicalStep * s.scale < FLOW_STEP_MIN) return;
  const hot = new Set([...flowsOf(model, s.hovered), ...flowsOf(model, s.selected)]);
  for (let k = 0; k < model.flowPut.length; k++) {
    const x0 = s.x(model.flowPut[k]);
    const x1 = s.x(model.flowTake[k]);
    if (x1 < GUTTER || x0 > s.width) continue;
    const below = layout.of[model.flowFrom[k]];
    const above = layout.of[model.flowTo[k]];
    if (!below || !above) continue;
    const y0 = below.y;
    const y1 = above.y + above.height + 1;
    ctx.strokeStyle = ctx.fillStyle = hot.has(k) ? theme.acc : theme.ink2;
    ctx.lineWidth = hot.has(k) ? 2 : 1;
    // neighboring lanes leave little room: the line then swings into both
    const bend = Math.max(FLOW_BEND_MIN, (y0 - y1) * 0.6);
    drawArrow(ctx, x0, y0, x1, y1, bend, 6);
  }
}

// from Send to Recv; of many only those of the marked step
function drawSends(ctx, s) {
  const { model, layout, theme } = s;
  const { sendTime, recvTime, recvTo, sendFrom, sendStep } = model;
  if (model.typicalStep * s.scale < FLOW_STEP_MIN) return;
  const marked = [s.hovered, s.selected].map((i) => (i < 0 ? i : stepOf(model, i)));
  const seen = [...sendTime.keys()].filter(
    (k) => s.x(recvTime[k]) >= GUTTER && s.x(sendTime[k]) <= s.width,
  );
  ctx.lineWidth = 1;
  for (const k of seen) {
    const hot = sendStep[k] >= 0 && marked.includes(sendStep[k]);
    if (!hot && seen.length > SENDS_MAX) continue;
    const [from, to] = [layout.of[sendFrom[k]], layout.of[recvTo[k]]];
    const down = to.y > from.y;
    const y0 = from.y + (down ? from.height : 0);
    const y1 = to.y + (down ? 0 : to.height);
    ctx.strokeStyle = ctx.fillStyle = hot ? theme.acc : theme.ink2;
    ctx.globalAlpha = hot ? 1 : 0.3;
    drawArrow(ctx, s.x(sendTime[k]), y0, s.x(recvTime[k]), y1, (y0 - y1) / 2, down ? -6 : 6);
  }
  ctx.globalAlpha = 1;
}

function drawArrow(ctx, x0, y0, x1, y1, bend, tip) {
  ctx.beginPath();
  ctx.moveTo(x0, y0);
  ctx.bezierCurveTo(x0, y0 - bend, x1, y1 + bend, x1, y1 + tip);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x1 - 3, y1 + tip);
  ctx.lineTo(x1 + 3, y1 + tip);
  ctx.fill();
}

function drawSelection(ctx, s) {
  const { model, layout, theme } = s;
  const row = layout.of[laneOf(model, s.selected)];
  const x = s.x(model.start[s.selected]);
  const width = Math.max(3, model.dur[s.selected] * s.scale);
  if (!row || x > s.width || x + width < GUTTER) return;
  ctx.strokeStyle = theme.acc;
  ctx.lineWidth = 2;
  ctx.strokeRect(x - 1, row.y - 2, width + 2, row.height + 4);
}

// Text on the canvas: measured once, cut with an ellipsis, never wider than its room.
import { bisect } from "./scales.js";

const WIDTHS_KEPT = 20000;

export function setFont(ctx, theme, size, bold = false) {
  const font = `${bold ? "600 " : ""}${size}px ${theme.font}`;
  if (ctx.wbFont !== font) ctx.font = ctx.wbFont = font;
}

export function textWidth(ctx, theme, text) {
  const key = ctx.wbFont + text;
  let width = theme.widths.get(key);
  if (width === undefined) {
    if (theme.widths.size > WIDTHS_KEPT) theme.widths.clear();
    width = ctx.measureText(text).width;
    theme.widths.set(key, width);
  }
  return width;
}

// the longest beginning that fits with an ellipsis; "" if not even two letters do
export function shorten(ctx, theme, text, room) {
  if (room < 12) return "";
  if (textWidth(ctx, theme, text) <= room) return text;
  const keeps = (n) => textWidth(ctx, theme, text.slice(0, n) + "…") <= room;
  const n = bisect(0, text.length, (k) => !keeps(k + 1));
  return n > 1 ? text.slice(0, n) + "…" : "";
}

// name of a node without the scopes above it: what distinguishes spans beside each other
export function shortName(name) {
  return name.slice(name.lastIndexOf("/") + 1) || name;
}

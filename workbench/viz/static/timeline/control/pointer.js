// Mouse, touchpad and wheel on the canvas. Every listener ends with the signal.
import { stripGrip } from "../draw/draw_strip.js";
import { LANES_TOP, STRIP_HEIGHT } from "../draw/layout.js";
import { GUTTER, MIN_WINDOW, panWindow, placeWindow, zoomWindow } from "../draw/scales.js";
import { momentNear } from "./pick.js";

const CLICK_REACH = 4; // px a click may slip

// What a press takes hold of: the strip, the window, a box to zoom into, or a stretch to mark.
function gripAt(view, event, x, y) {
  if (event.button === 1) return "window";
  if (y < STRIP_HEIGHT) return x >= GUTTER ? "strip" : null;
  // a finger scrolls the page and the lanes
  if (event.shiftKey || event.pointerType === "touch") return "window";
  return event.altKey || y < LANES_TOP ? "box" : "range";
}

export function watchPointer(canvas, view, signal) {
  let held = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const on = (type, listener, options = {}) =>
    canvas.addEventListener(type, listener, { signal, ...options });

  on("pointerdown", (event) => {
    if (event.button > 1) return;
    const [x, y] = place(event);
    if (event.button === 1) event.preventDefault();
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    held = { x, y, window: view.state.window, moved: 0, grip: gripAt(view, event, x, y) };
    if (held.grip === "strip") {
      held.part = stripGrip(view.state, x);
      dragStrip(view, held, x);
    }
    view.hideCard();
  });
  on("pointermove", (event) => {
    const [x, y] = place(event);
    if (!held) {
      view.hover(x, y);
      return;
    }
    held.moved = Math.max(held.moved, Math.abs(x - held.x));
    if (held.grip === "strip") dragStrip(view, held, x);
    else if (held.grip && held.moved >= CLICK_REACH) dragLanes(canvas, view, held, x, y);
  });
  on("pointerup", (event) => {
    if (held && held.grip !== "strip") release(view, held, event.button, place(event));
    held = null;
    canvas.style.cursor = "";
  });
  on("pointercancel", () => {
    view.drawBox(null);
    held = null;
  });
  on("pointerleave", () => view.hover(-1, -1));
  on("dblclick", (event) => {
    const [, y] = place(event);
    if (y >= STRIP_HEIGHT) view.fit();
  });
  on("wheel", (event) => wheel(canvas, view, event, place(event)[0]), { passive: false });
}

function release(view, held, button, [x, y]) {
  if (held.moved < CLICK_REACH) {
    if (button === 0) view.click(x, y);
    return;
  }
  if (held.grip === "range") view.markSoon(stretchOf(view, held, x, y), 0);
  if (held.grip === "box") {
    view.drawBox(null);
    view.zoomTo(stretchOf(view, held, x, y));
  }
}

function stretchOf(view, held, x, y) {
  const ends = [momentNear(view.state, held.x, held.y), momentNear(view.state, x, y)];
  return ends.sort((a, b) => a - b);
}

function dragLanes(canvas, view, held, x, y) {
  if (held.grip === "range") {
    canvas.style.cursor = "ew-resize";
    view.markSoon(stretchOf(view, held, x, y));
  } else if (held.grip === "box") {
    canvas.style.cursor = "zoom-in";
    view.drawBox(stretchOf(view, held, x, y));
  } else {
    const [from, to] = held.window;
    const width = to - from;
    const share = (x - held.x) / (view.state.width - GUTTER);
    view.setWindow(placeWindow(from - share * width, width, view.state.model.duration));
    canvas.style.cursor = "grabbing";
  }
}

function dragStrip(view, held, x) {
  const { model, width } = view.state;
  const total = model.duration;
  const scale = (width - GUTTER) / model.whole;
  const t = (x - GUTTER) / scale;
  const [from, to] = held.window;
  if (held.part === "from") {
    const low = Math.min(t, to - MIN_WINDOW);
    view.setWindow(placeWindow(low, to - low, total));
  } else if (held.part === "to") {
    view.setWindow(placeWindow(from, Math.max(t, from + MIN_WINDOW) - from, total));
  } else {
    // a press inside the window carries it; outside, the window jumps under the pointer first
    const grabbed = (held.x - GUTTER) / scale;
    const inside = grabbed >= from && grabbed <= to;
    const shift = inside ? t - grabbed : t - (from + to) / 2;
    view.setWindow(placeWindow(from + shift, to - from, total));
  }
}

// a plain wheel belongs to the page unless the timeline has focus
function wheel(canvas, view, event, x) {
  const { model, window: shown, scale } = view.state;
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
  const zooms = event.ctrlKey || event.metaKey || document.activeElement === canvas;
  if (!sideways && !zooms) return;
  event.preventDefault();
  view.hideCard();
  const lines = event.deltaMode === 1 ? 16 : 1;
  if (sideways) {
    const moved = ((event.deltaX || event.deltaY) * lines) / 1200;
    view.setWindow(panWindow(shown, moved, model.duration));
    return;
  }
  // a pinch arrives as a wheel with Ctrl and small steps
  const pinch = event.ctrlKey && Math.abs(event.deltaY) < 50;
  const factor = Math.exp(event.deltaY * lines * (pinch ? 0.008 : 0.0018));
  const at = shown[0] + (Math.max(x, GUTTER) - GUTTER) / scale;
  view.setWindow(zoomWindow(shown, factor, at, model.duration));
}

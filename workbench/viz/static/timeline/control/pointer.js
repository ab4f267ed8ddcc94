// Mouse, touchpad and wheel on the canvas. Every listener ends with the signal.
import { stripGrip } from "../draw/draw_strip.js";
import { STRIP_HEIGHT } from "../draw/layout.js";
import { GUTTER, MIN_WINDOW, panWindow, placeWindow, zoomWindow } from "../draw/scales.js";

const CLICK_REACH = 4; // px a click may slip

export function watchPointer(canvas, view, signal) {
  let held = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const on = (type, listener, options = {}) =>
    canvas.addEventListener(type, listener, { signal, ...options });

  on("pointerdown", (event) => {
    if (event.button !== 0) return;
    const [x, y] = place(event);
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    held = { x, window: view.state.window, moved: 0, grip: null };
    if (y < STRIP_HEIGHT && x >= GUTTER) {
      held.grip = stripGrip(view.state, x);
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
    if (held.grip) dragStrip(view, held, x);
    else if (held.moved >= CLICK_REACH) {
      const [from, to] = held.window;
      const width = to - from;
      const share = (x - held.x) / (view.state.width - GUTTER);
      view.setWindow(placeWindow(from - share * width, width, view.state.model.duration));
      canvas.style.cursor = "grabbing";
    }
  });
  on("pointerup", (event) => {
    if (held && !held.grip && held.moved < CLICK_REACH) view.click(...place(event));
    held = null;
    canvas.style.cursor = "";
  });
  on("pointercancel", () => {
    held = null;
  });
  on("pointerleave", () => view.hover(-1, -1));
  on("dblclick", (event) => {
    const [, y] = place(event);
    if (y >= STRIP_HEIGHT) view.fit();
  });
  on("wheel", (event) => wheel(canvas, view, event, place(event)[0]), { passive: false });
}

function dragStrip(view, held, x) {
  const { model, width } = view.state;
  const total = model.duration;
  const t = ((x - GUTTER) / (width - GUTTER)) * total;
  const [from, to] = held.window;
  if (held.grip === "from") {
    const low = Math.min(t, to - MIN_WINDOW);
    view.setWindow(placeWindow(low, to - low, total));
  } else if (held.grip === "to") {
    view.setWindow(placeWindow(from, Math.max(t, from + MIN_WINDOW) - from, total));
  } else {
    // a press inside the window carries it; outside, the window jumps under the pointer first
    const grabbed = ((held.x - GUTTER) / (width - GUTTER)) * total;
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

// The height of a panel: the same in every tab, and the reader's to change, by pointer or by keys.
import { element } from "../shared/dom.js";

const LEAST = 420;
const MOST = 2400;
const KEY_STEP = 40;

export function heightElement(root, signal) {
  const handle = element("div", {
    class: "wbp-height", role: "separator", tabindex: "0", "aria-orientation": "horizontal",
    "aria-label": "Height of the panel", "aria-valuemin": String(LEAST), "aria-valuemax": String(MOST),
  });
  const put = (height) => {
    const px = Math.round(Math.max(LEAST, Math.min(MOST, height)));
    root.style.setProperty("--wbp-height", `${px}px`);
    handle.setAttribute("aria-valuenow", String(px));
  };
  const now = () => root.getBoundingClientRect().height;
  handle.setAttribute("aria-valuenow", "720");
  handle.addEventListener("keydown", (event) => {
    const by = { ArrowDown: KEY_STEP, ArrowUp: -KEY_STEP }[event.key];
    if (!by) return;
    event.preventDefault();
    put(now() + by);
  }, { signal });
  handle.addEventListener("pointerdown", (event) => {
    const [from, height] = [event.clientY, now()];
    handle.setPointerCapture(event.pointerId);
    const move = ({ clientY }) => put(height + clientY - from);
    const end = () => handle.removeEventListener("pointermove", move);
    handle.addEventListener("pointermove", move, { signal });
    for (const name of ["pointerup", "pointercancel"]) handle.addEventListener(name, end, { once: true, signal });
  }, { signal });
  return handle;
}

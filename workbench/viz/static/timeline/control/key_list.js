// The list of all keys, which a question mark shows.
import { element } from "../../shared/dom.js";
import { ALL_KEYS, PATH_KEYS, POINTER_KEYS } from "./keys.js";

function keyRows(title, keys) {
  const rows = keys.map(([names, words]) => [
    element("dt", {}, ...names.map((name) => element("kbd", {}, name))),
    element("dd", {}, words),
  ]);
  return element("div", {}, element("h4", {}, title), element("dl", {}, ...rows.flat()));
}

// Adds `showKeys` to a view, which shows the list in `holder` and hides it again.
export function addKeyList(view, holder, withPath, signal) {
  const close = element("button", { type: "button", class: "wb-btn" }, "Close");
  const keys = withPath ? [...ALL_KEYS, ...PATH_KEYS] : ALL_KEYS;
  holder.append(keyRows("Keys", keys), keyRows("Pointer", POINTER_KEYS), close);
  view.showKeys = () => {
    holder.hidden = !holder.hidden;
    if (holder.hidden) view.parts.lanes.focus({ preventScroll: true });
    else close.focus({ preventScroll: true });
    view.tell("keys", !holder.hidden);
  };
  close.addEventListener("click", view.showKeys, { signal });
  const onKey = (event) => {
    if (event.key !== "Escape" && event.key !== "?") return;
    event.preventDefault();
    event.stopPropagation();
    view.showKeys();
  };
  holder.addEventListener("keydown", onKey, { signal });
}

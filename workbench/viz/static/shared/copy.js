// Text to the clipboard, also where a page may not ask for it.
import { element } from "./dom.js";

const SAID_FOR = 1500; // ms

// returns whether it is there
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const before = document.activeElement;
  const field = element("textarea", { "aria-hidden": "true", style: "position:fixed;opacity:0" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  before?.focus({ preventScroll: true });
  return done;
}

// Says on a button whether what it copies was copied.
export async function sayCopied(button, copying) {
  const words = button.dataset.words || button.textContent;
  button.dataset.words = words;
  button.textContent = (await copying) ? "Copied" : "Not copied";
  setTimeout(() => (button.textContent = words), SAID_FOR);
}

// Copies a text; where the page may not, it shows the text to be copied by hand.
import { element } from "../shared/dom.js";

const SHOWN_MS = 6000; // how long "Copied" stands there

export function copyText(signal) {
  const words = element("span", { class: "wb-quiet wbp-small", role: "status" });
  const text = element("pre", { class: "wbp-code", tabindex: "0", hidden: "", "aria-label": "Text to copy" });
  const root = element("div", { class: "wbp-copying", hidden: "" }, words, text);
  let timer = 0;
  const close = () => {
    root.hidden = true;
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return {
    root,
    close,
    async copy(given) {
      clearTimeout(timer);
      root.hidden = false;
      text.textContent = given;
      try {
        await navigator.clipboard.writeText(given);
        text.hidden = true;
        words.textContent = "Copied";
        timer = setTimeout(close, SHOWN_MS);
      } catch {
        text.hidden = false;
        words.textContent = "This page may not copy; select the lines below.";
        getSelection().selectAllChildren(text);
      }
    },
  };
}

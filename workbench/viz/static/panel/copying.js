// Copies a text; where the page may not, it shows the text to be copied by hand.
import { copyText } from "../shared/copy.js";
import { element } from "../shared/dom.js";

const SHOWN_MS = 6000; // how long "Copied" stands there

export function copyingElement(signal) {
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
      text.hidden = await copyText(given);
      words.textContent = text.hidden ? "Copied" : "This page may not copy; select the lines below.";
      if (text.hidden) timer = setTimeout(close, SHOWN_MS);
      else getSelection().selectAllChildren(text);
    },
  };
}

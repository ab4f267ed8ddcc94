// The text below a timeline: what is selected, or how to move.
import { copyText, sayCopied } from "../../shared/copy.js";
import { element, keyHints } from "../../shared/dom.js";
import { factsOf, spanName } from "../draw/describe.js";
import { KEY_HINTS } from "./keys.js";
import { nodeOf } from "./nodes.js";
import { toolButton } from "./parts.js";

function hintsElement() {
  const hints = keyHints(KEY_HINTS);
  hints.append(element("span", {}, element("kbd", {}, "drag"), "sums a stretch"));
  return hints;
}

function selectedElement(model, i) {
  const facts = element("div", {});
  for (const [label, value] of factsOf(model, i)) {
    const words = element("span", { class: "wb-fact" });
    words.append(element("span", { class: "wb-quiet" }, label), ` ${value}`);
    facts.append(words, " ");
  }
  const name = element("div", { class: "wb-mono wb-strong" }, spanName(model, i));
  return element("div", { class: "wb-selected" }, name, facts);
}

// Returns what describes the selected span in `parts.about`; adds `copyName` to the view, and
// `copyLink`, which a page with links to its selections replaces.
export function newDescriber(parts, view, signal) {
  view.copyName = () => {
    const { model, selected } = view.state;
    const copies = parts.about.querySelector("[data-copy]");
    if (selected >= 0 && copies) sayCopied(copies, copyText(nodeOf(model, selected) || spanName(model, selected)));
  };
  view.copyLink = async () => false;
  const clear = () => {
    view.select(-1);
    parts.lanes.focus({ preventScroll: true });
  };
  return (i) => {
    if (i < 0) {
      parts.about.replaceChildren(hintsElement());
      return;
    }
    const link = toolButton("Copy link", (one) => sayCopied(one, view.copyLink()), signal, { "data-link": "" });
    link.hidden = !view.linked;
    parts.about.replaceChildren(
      selectedElement(view.state.model, i),
      toolButton("Zoom to it", () => view.fit(), signal),
      toolButton("Mark it", () => view.markSelected(false), signal),
      toolButton("Copy name", () => view.copyName(), signal, { "data-copy": "" }),
      link,
      toolButton("Clear", clear, signal),
    );
  };
}

// What stands in place of the tabs before anything has run: the shape of the step, and what to do.
import { element } from "../shared/dom.js";
import { panelButton } from "./strip.js";

const BUILDING = "Nothing has run. A child process imports TensorFlow and builds the graph, to show what may run ahead.";
const KERNEL = "It runs in child processes; the kernel stays free.";
const GUESSED = "The time is from the budget: this program was not measured here yet.";
const NOTHING = "Nothing has run.";

export function emptyElement(host, signal) {
  const shape = element("div", { class: "wbp-shown", "aria-live": "polite" });
  const measure = panelButton(`Measure it (${host.view.wait})`, {
    class: "wbp-primary wbp-measure", signal, onClick: () => host.act("run"),
  });
  const words = host.view.wait_measured ? KERNEL : `${GUESSED} ${KERNEL}`;
  const why = element("p", { class: "wb-quiet wbp-small" }, words);
  const root = element("div", { class: "wbp-empty" }, shape);
  if (host.live) root.append(element("div", { class: "wbp-first" }, measure, why));
  let drawn = null;
  let asked = false;
  return {
    root,
    update() {
      const any = host.get("run_list").length > 0;
      root.hidden = any;
      if (any) return;
      if (host.live && !asked) {
        asked = true;
        host.act("shape");
      }
      measure.disabled = !host.live || host.job().running;
      const now = host.get("shape") || "";
      if (now === drawn) return;
      drawn = now;
      // markup of the package's own template, in which every text of the user is escaped
      if (now) shape.innerHTML = now;
      else shape.replaceChildren(element("p", { class: "wb-sentence" }, host.live ? BUILDING : NOTHING));
    },
  };
}

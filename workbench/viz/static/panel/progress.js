// How a run goes: its phases by name, how much of it is over, and what it does now.
import { element } from "../shared/dom.js";

const STATES = { over: "over", now: "now", next: "to come" };

function phaseElement({ title, state }) {
  const now = state === "now";
  const said = element("span", { class: "wbp-hidden" }, `, ${STATES[state]}`);
  return element("li", { class: `wbp-phase wbp-${state}`, "aria-current": now ? "step" : null }, title, said);
}

// Where a fraction of the axis is.
const across = (share) => `${(100 * share).toFixed(2)}%`;

function roundsElement(row, one) {
  const axis = element("span", { class: "wbp-axis", "aria-hidden": "true" });
  axis.append(element("i", { class: "wbp-one", style: `left:${across(one)}` }));
  if (row.low !== null) {
    const wide = `left:${across(row.low)};width:${across(row.high - row.low)}`;
    axis.append(element("i", { class: "wbp-range", style: wide }));
  }
  axis.append(...row.dots.map((at) => element("i", { class: "wbp-dot", style: `left:${across(at)}` })));
  const words = element("span", {}, element("span", { class: "wb-strong" }, row.words), `, ${row.verdict}, ${row.rounds}`);
  return element("li", {}, element("span", {}, row.label), axis, words);
}

// What the blocks so far say: a dot for each round, and the interval of their mean.
function evidenceElement() {
  const root = element("ol", { class: "wbp-evidence wbp-small", "aria-label": "Ratios so far", hidden: "" });
  return {
    root,
    update(evidence) {
      root.hidden = !evidence;
      root.replaceChildren(...(evidence ? evidence.rows.map((row) => roundsElement(row, evidence.one)) : []));
    },
  };
}

export function progressElement() {
  const phases = element("ol", { class: "wbp-phases", "aria-label": "Phases of the run" });
  const fill = element("i", {});
  const bar = element("div", { class: "wbp-bar", role: "progressbar", "aria-label": "Run" }, fill);
  const words = element("span", { class: "wbp-grow", role: "status" });
  const left = element("span", { class: "wb-quiet" });
  const line = element("div", { class: "wbp-small wbp-doing" }, words, left);
  const machine = element("p", { class: "wbp-small wbp-machine", role: "status", hidden: "" });
  const evidence = evidenceElement();
  const root = element("div", { class: "wbp-progress", hidden: "" }, phases, bar, line, machine, evidence.root);
  return {
    root,
    update(job, status) {
      root.hidden = !job.running;
      if (!job.running) return;
      const known = job.share !== null;
      phases.hidden = !job.phases.length;
      phases.replaceChildren(...job.phases.map(phaseElement));
      bar.classList.toggle("wbp-unknown", !known);
      fill.style.width = known ? `${100 * job.share}%` : "";
      if (known) bar.setAttribute("aria-valuenow", String(Math.round(100 * job.share)));
      else bar.removeAttribute("aria-valuenow");
      bar.setAttribute("aria-valuetext", [job.words, job.left].filter(Boolean).join(", "));
      if (words.textContent !== job.words) words.textContent = job.words;
      left.textContent = [job.result, job.left || status].filter(Boolean).join(". ");
      machine.textContent = job.machine || "";
      machine.hidden = !job.machine;
      evidence.update(job.evidence);
    },
  };
}

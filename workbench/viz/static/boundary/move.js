// Moving the line: by its handle, by the tick of a box, by SmartStage's edits; what it is predicted
// to give, and the cut as code. Predictions come from Python: from the page for the cuts that it
// knows, from the kernel for others.
import { element } from "../shared/dom.js";
import { breakable } from "./box.js";
import {
  COLUMN_GAP, byteWords, crossing, cutCode, cutKey, differences, takeEdit, withNeeds, withoutLeaves,
} from "./cut.js";
import { drawCut } from "./flow.js";
import { headRow, scrolled } from "./tables.js";

const NO_TRACE = "Times and predictions need a trace: wb.plan(boundary, trace=trace).";
const NO_KERNEL = "This page predicts the places of the line only; wb.widget(…) with its kernel predicts any cut.";

export function moveElement(parts, flow) {
  parts.facts = element("dl", { class: "wbb-facts" });
  parts.note = element("p", { class: "wb-quiet wbb-note" }, flow.timed ? NO_KERNEL : NO_TRACE);
  parts.said = element("p", { class: "wbb-said", role: "status", "aria-live": "polite" });
  parts.edits = element("div", { class: "wbb-diff" });
  parts.code = element("code", { class: "wb-mono" });
  parts.copy = element("button", { type: "button", class: "wb-btn wbb-copy" }, "Copy");
  const made = element("div", { class: "wbb-moving" }, parts.edits);
  if (flow.leaves.length) {
    made.append(
      element(
        "details",
        { class: "wbb-code-block" },
        element("summary", {}, "This cut as code"),
        element("pre", {}, parts.code),
        parts.copy,
      ),
    );
  }
  return made;
}

function fact(name, words, quiet = "") {
  const made = element("div", {}, element("dt", {}, name), element("dd", {}, words));
  if (quiet) made.lastChild.append(element("span", { class: "wb-quiet" }, ` ${quiet}`));
  return made;
}

// always as many, so that nothing below them jumps
function predictedFacts(flow, known, asked) {
  const told = known && known.step ? known : null;
  const why = flow.timed ? (asked ? "asks the kernel" : "not known here") : "needs a trace";
  return [
    told ? fact("Predicted step", `◇ ${told.step}`, flow.stale ? "with exact lookups" : "") : fact("Predicted step", "–", why),
    fact("Against un-staged", told ? told.gain : "–"),
    fact("Limited by", told ? told.limited_by : "–"),
  ];
}

function editRow(view, edit, gain, number) {
  const box = view.boxes[view.flow.boxes[edit.box].box];
  const verb = edit.adds ? "run ahead" : "stay";
  return element(
    "tr",
    {},
    element("th", { scope: "row", class: "wb-mono" }, ...breakable(box.title)),
    element("td", {}, `would ${verb}`),
    element("td", {}, box.about),
    element("td", { class: "wb-right" }, gain ? `◇ ${gain}` : "–"),
    element(
      "td",
      { class: "wbb-choose" },
      element("button", { type: "button", class: "wb-btn", "data-accept": number }, "Accept"),
      element("button", { type: "button", class: "wb-btn", "data-reject": number }, "Reject"),
    ),
  );
}

function diffElements(view, state, open, known) {
  const { flow } = view;
  if (flow.smart < 0) return [];
  const rejected = state.rejected.size;
  const title = element("div", { class: "wbb-title" }, "SmartStage's cut against this one");
  if (!open.length && !rejected) return [title, element("p", { class: "wb-quiet" }, "This is SmartStage's cut.")];
  const gains = new Map((known ? known.edits : []).map((edit) => [edit.box, edit.gain]));
  const smart = flow.cuts[flow.smart];
  const parts = [title];
  if (open.length) {
    const rows = open.map((edit, number) => editRow(view, edit, gains.get(edit.box) || "", number));
    const whole = smart.step ? ` All of them: ◇ ${smart.step} a step.` : "";
    parts.push(
      scrolled(
        element(
          "table",
          { class: "wb-table" },
          element("caption", {}, `Gains are of each edit alone, with what it needs, so they need not add up.${whole}`),
          headRow([["Box"], ["SmartStage"], ["Nodes"], ["Step", true], [""]]),
          element("tbody", {}, ...rows),
        ),
      ),
      element("button", { type: "button", class: "wb-btn", "data-accept": "all" }, "Accept all"),
    );
  } else parts.push(element("p", { class: "wb-quiet" }, "No other difference is left."));
  if (rejected) {
    parts.push(" ", element("button", { type: "button", class: "wb-btn", "data-restore": "" }, `Show ${rejected} rejected`));
  }
  return parts;
}

function lastStop(flow) {
  let last = -1;
  flow.cuts.forEach((cut, place) => { if (cut.x >= 0) last = place; });
  return last;
}

// What the answer says once the line is elsewhere than what it speaks of.
function movedSentence(flow, ahead, cut, waits, next) {
  const boxes = flow.boxes.filter(({ leaves }) => leaves.some((leaf) => ahead.has(leaf))).length;
  const lead = `: ${boxes} of ${flow.boxes.length} boxes run ahead. `;
  const told = cut && cut.step ? `Predicted: ${cut.gain} of un-staged, ${cut.step} a step.` : "";
  const why = waits ? "What that gives is being predicted." : "What that gives is not predicted here.";
  return [element("strong", {}, "You moved the line"), lead, told || why, next ? ` ${next}` : ""];
}

//   ask(leaves): asks the kernel about a cut, or null without one. onCut(leaves): told of each cut.
//   next: what to do with a line that was moved, a sentence.
export function moveController(view, parts, state, { ask, onCut, next = "" }) {
  const { flow } = view;
  const answer = [...parts.sentence.childNodes];
  const first = cutKey(flow.cuts[flow.shown].leaves);
  const known = new Map(flow.cuts.map((cut) => [cutKey(cut.leaves), cut]));
  const last = lastStop(flow);
  const knownNow = () => known.get(cutKey(state.ahead));
  const openEdits = () => differences(flow, state.ahead).filter((edit) => !state.rejected.has(edit.box));
  let answers = ask !== null;
  const draw = () => {
    const found = crossing(flow, state.ahead);
    const points = drawCut(view, parts, state.ahead, found);
    const cut = knownNow();
    const wants = flow.timed && answers && (!cut || (flow.smart >= 0 && !cut.edits.length && openEdits().length));
    parts.facts.replaceChildren(
      ...predictedFacts(flow, cut, answers),
      fact("Through the buffer", `${found.tensors} ${found.tensors === 1 ? "tensor" : "tensors"}`),
      fact("One item", byteWords(found.bytes, found.unknown)),
    );
    const moved = cutKey(state.ahead) !== first;
    // what stands below stays where it is
    if (moved) parts.sentence.style.minHeight ||= `${parts.sentence.offsetHeight}px`;
    parts.sentence.replaceChildren(
      ...(moved ? movedSentence(flow, state.ahead, cut, flow.timed && answers, next) : answer),
    );
    parts.note.hidden = flow.timed && answers;
    parts.edits.replaceChildren(...diffElements(view, state, openEdits(), cut));
    parts.code.textContent = cutCode(flow, state.ahead);
    const at = flow.cuts.findIndex((one) => one.x >= 0 && cutKey(one.leaves) === cutKey(state.ahead));
    const x = at >= 0 ? flow.cuts[at].x : points[0][0];
    parts.handle.style.left = `${x}px`;
    parts.handle.setAttribute("aria-valuemax", last);
    parts.handle.setAttribute("aria-valuenow", Math.max(0, at));
    parts.handle.setAttribute("aria-valuetext", at >= 0 ? flow.cuts[at].label : "a cut of single boxes");
    if (wants) ask([...state.ahead].sort((a, b) => a - b));
  };
  const say = (words, bad = false) => {
    parts.said.textContent = words;
    parts.said.classList.toggle("wbb-bad", bad);
    parts.frame.classList.toggle("wbb-refused", bad);
  };
  const take = (ahead, words = "") => {
    state.ahead = ahead;
    draw();
    say(words);
    onCut([...ahead].sort((a, b) => a - b));
  };
  const boxName = (leaf) => view.boxes[flow.leaves[leaf].box].title;
  const along = (before, after, wanted) => {
    const moved = [...after].filter((leaf) => !before.has(leaf) && !wanted.has(leaf));
    const stayed = [...before].filter((leaf) => !after.has(leaf) && !wanted.has(leaf));
    const names = [...new Set((moved.length ? moved : stayed).map(boxName))];
    if (!names.length) return "";
    const shown = names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "");
    return moved.length ? `Runs ahead as well, because what you chose depends on it: ${shown}.` : `Stays as well, because it depends on what stays: ${shown}.`;
  };
  const toggle = (leaves, on) => {
    const before = state.ahead;
    const after = on ? new Set([...before, ...withNeeds(flow, leaves)]) : withoutLeaves(flow, before, leaves);
    take(after, along(before, after, new Set(leaves)));
  };
  const stopNear = (x) => {
    let best = 0;
    flow.cuts.forEach((cut, place) => {
      if (cut.x >= 0 && Math.abs(cut.x - x) < Math.abs(flow.cuts[best].x - x)) best = place;
    });
    return best;
  };
  const goTo = (place) => {
    if (place > last) {
      say(`The line stops here. ${flow.last}`, true);
      return;
    }
    const cut = flow.cuts[Math.max(0, place)];
    if (cutKey(cut.leaves) !== cutKey(state.ahead) || parts.said.textContent) take(new Set(cut.leaves), `${cut.label[0].toUpperCase()}${cut.label.slice(1)}.`);
  };
  return {
    draw,
    // the line in view, with a little more of what is ahead of it
    reveal() {
      parts.frame.scrollLeft = parseFloat(parts.handle.style.left) - 0.6 * parts.frame.clientWidth;
    },
    tick: (place, on) => toggle(flow.boxes[place].leaves, on),
    tickLeaves: toggle,
    dragTo(x) {
      if (last >= 0 && x > flow.cuts[last].x + COLUMN_GAP / 2 && cutKey(state.ahead) === cutKey(flow.cuts[last].leaves)) {
        parts.handle.style.left = `${Math.min(x, flow.cuts[last].x + 26)}px`;
        goTo(last + 1);
      } else goTo(stopNear(x));
    },
    release() {
      draw();
      parts.frame.classList.remove("wbb-refused");
    },
    // by places; to either end where `by` is not finite
    step(by) {
      if (Number.isFinite(by)) goTo(stopNear(parseFloat(parts.handle.style.left)) + by);
      else goTo(by > 0 ? last : 0);
    },
    accept(which) {
      const edits = openEdits();
      if (which === "all") for (const edit of edits) state.ahead = takeEdit(flow, state.ahead, edit);
      else state.ahead = takeEdit(flow, state.ahead, edits[Number(which)]);
      take(state.ahead, which === "all" ? "All edits taken." : "Edit taken.");
    },
    reject(which) {
      state.rejected.add(openEdits()[Number(which)].box);
      draw();
      say("Edit rejected.");
    },
    restore() {
      state.rejected.clear();
      draw();
    },
    unanswered() {
      answers = false;
      draw();
    },
    told(cut) {
      answers = true;
      known.set(cutKey(cut.leaves), cut);
      if (cutKey(cut.leaves) === cutKey(state.ahead)) draw();
    },
  };
}

export function watchLine(parts, move, signal) {
  const { handle, canvas } = parts;
  let held = false;
  const at = (event) => event.clientX - canvas.getBoundingClientRect().left;
  const listen = (target, name, act) => target.addEventListener(name, act, { signal });
  listen(handle, "pointerdown", (event) => {
    held = true;
    handle.setPointerCapture(event.pointerId);
    handle.focus();
    event.preventDefault();
  });
  listen(handle, "pointermove", (event) => { if (held) move.dragTo(at(event)); });
  const end = () => { if (held) { held = false; move.release(); } };
  listen(handle, "pointerup", end);
  listen(handle, "pointercancel", end);
  listen(parts.boxes, "change", (event) => {
    if (event.target.dataset.tick) move.tick(Number(event.target.dataset.tick), event.target.checked);
  });
  listen(parts.copy, "click", async () => {
    try {
      await navigator.clipboard.writeText(parts.code.textContent);
      parts.said.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(parts.code);
      parts.said.textContent = "Selected: copy it with the keyboard.";
    }
  });
}

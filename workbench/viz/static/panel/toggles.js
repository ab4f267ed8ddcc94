// The column of toggles: built once, then kept up to date in place, so that the focus stays.
import { element } from "../shared/dom.js";
import { evidenceElement } from "./evidence.js";
import { chosenWith, isSwitched, steppedNumber, valueOfGroup } from "./setting.js";

function chipElement({ kind, text, title }) {
  const mark = element("i", { class: `wbp-mark wbp-${kind}`, "aria-hidden": "true" });
  return element("span", { class: "wbp-chip", title: title || null }, mark, text);
}

// Options that are refused for one reason share the sentence that says so.
function refusedId(name, options, option) {
  const first = options.find((one) => one.refused === option.refused);
  return `${name}-${first.value}-refused`;
}

function setOption(group, value, host) {
  if (group.toggle) host.set("chosen", chosenWith(group, value, host.get("chosen")));
  else host.set(group.key, value);
}

function listElement(group, name, host, signal) {
  const list = element("select", { class: "wbp-list", "aria-label": group.title });
  for (const option of group.options) {
    const attributes = { value: option.value, "data-label": option.label, title: option.refused || null };
    list.append(element("option", attributes, option.label));
  }
  list.addEventListener("change", () => setOption(group, list.value, host), { signal });
  return list;
}

function choiceElement(group, name, host, signal) {
  if (group.listed) return listElement(group, name, host, signal);
  const row = element("div", { class: "wbp-seg", role: "radiogroup", "aria-label": group.title });
  for (const option of group.options) {
    const input = element("input", {
      type: "radio",
      name,
      value: option.value,
      disabled: option.refused ? "" : null,
      "aria-describedby": option.refused ? refusedId(name, group.options, option) : null,
    });
    input.addEventListener("change", () => setOption(group, option.value, host), { signal });
    row.append(element("label", { title: option.refused || null }, input, option.label));
  }
  return row;
}

function numberElement(number, name, host, signal) {
  const words = number.label || name;
  const value = element("output", { "aria-live": "off" });
  const stepper = (by, sign, what) => {
    const made = element("button", { type: "button", "aria-label": `${words}: ${what}` }, sign);
    const step = () => host.set(number.key, steppedNumber(host.get(number.key), by, number));
    made.addEventListener("click", step, { signal });
    return made;
  };
  const box = element("span", { class: "wbp-box" }, stepper(-1, "−", "less"), value, stepper(1, "+", "more"));
  const row = element("span", { class: "wbp-step", title: number.title || null }, number.label, box);
  const warns = number.warns ? element("p", { class: "wbp-help", hidden: "" }, number.warns) : null;
  return { row, value, number, warns, buttons: box.querySelectorAll("button") };
}

function flagElement({ key, label, title, refused }, name, host, signal) {
  const id = refused ? `${name}-${key}-refused` : null;
  const input = element("input", { type: "checkbox", "aria-describedby": id });
  input.addEventListener("change", () => host.set(key, input.checked), { signal });
  const rows = [element("label", { class: "wbp-flag", title: refused || title }, input, label)];
  if (refused) rows.push(element("p", { class: "wbp-help", id }, refused));
  return { rows, input, key, refused };
}

function groupElement(group, number, host, signal) {
  const name = `wbp-${host.id}-${number}`;
  const head = element("div", { class: "wbp-head" }, element("span", { class: "wb-strong" }, group.title));
  const root = element("div", { class: "wbp-group", "data-group": group.key }, head);
  const made = { root, group, numbers: group.numbers.map((one) => numberElement(one, group.title, host, signal)) };
  if (group.options.length) {
    made.choice = choiceElement(group, name, host, signal);
    root.append(made.choice);
  } else head.append(...made.numbers.map((one) => one.row));
  if (group.help) root.append(element("p", { class: "wbp-help" }, group.help));
  const reasons = new Map(group.options.map((one) => [one.refused, refusedId(name, group.options, one)]));
  reasons.delete("");
  for (const [reason, id] of reasons) root.append(element("p", { class: "wbp-help", id }, reason));
  if (group.options.length && made.numbers.length) {
    root.append(element("div", { class: "wbp-two" }, ...made.numbers.map((one) => one.row)));
    root.append(...made.numbers.map((one) => one.warns).filter(Boolean));
  }
  if (group.flag) {
    made.flag = flagElement(group.flag, name, host, signal);
    root.append(...made.flag.rows);
  }
  // what the setting now excludes, and what a switched toggle means
  made.why = element("p", { class: "wbp-help", id: `${name}-excluded`, hidden: "" });
  made.warns = element("p", { class: "wbp-help", hidden: "" });
  made.chips = element("div", { class: "wbp-chips" });
  root.append(made.why, made.warns, made.chips);
  return made;
}

// Greys what the setting now excludes; what the program never has stays as it was drawn.
function updateOptions(made, host, excluded) {
  const { group } = made;
  const now = valueOfGroup(group, host.get);
  if (group.listed) made.choice.value = now;
  const controls = made.choice.querySelectorAll(group.listed ? "option" : "input");
  group.options.forEach((option, i) => {
    const why = excluded[option.value] || "";
    controls[i].disabled = Boolean(option.refused || why);
    if (group.listed) return;
    controls[i].checked = option.value === now;
    if (option.refused) return;
    controls[i].closest("label").toggleAttribute("title", Boolean(why));
    controls[i].toggleAttribute("aria-describedby", Boolean(why));
    if (!why) return;
    controls[i].closest("label").title = why;
    controls[i].setAttribute("aria-describedby", made.why.id);
  });
}

function updateGroup(made, host, said) {
  const { group } = made;
  const excluded = (said && said.excluded[group.key]) || {};
  if (made.choice) updateOptions(made, host, excluded);
  made.why.textContent = [...new Set(Object.values(excluded))].join(" ");
  made.why.hidden = !made.why.textContent;
  const chosen = group.options.find(({ value }) => value === valueOfGroup(group, host.get));
  made.warns.textContent = (chosen && chosen.warns) || "";
  made.warns.hidden = !made.warns.textContent;
  const idle = group.needs_stage && host.get("stage") === "off";
  for (const { row, value, number, warns, buttons } of made.numbers) {
    const now = host.get(number.key);
    value.textContent = now ? thousands(now) : number.auto;
    const counts = !number.stages.length || number.stages.includes(host.get("stage"));
    const refused = idle || !counts || Boolean(group.refused || (!group.options.length && excluded.number));
    row.classList.toggle("wbp-no-use", refused);
    if (warns) warns.hidden = refused || !now;
    buttons[0].disabled = refused || now <= 0;
    buttons[1].disabled = refused || now >= number.most;
  }
  if (made.flag) {
    made.flag.input.checked = host.get(made.flag.key);
    made.flag.input.disabled = idle || Boolean(made.flag.refused);
  }
  made.chips.replaceChildren(...((said && said.chips[group.key]) || []).map(chipElement));
}

function thousands(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, "\u2009");
}

// What is known of the setting, the progress of a run, and the buttons.
function summaryElement(host, signal) {
  const parts = {
    from: element("div", { class: "wb-quiet wbp-small" }),
    rate: element("span", { class: "wbp-big" }),
    half: element("span", { class: "wbp-small" }),
    beside: element("div", { class: "wbp-small" }),
    why: element("div", { class: "wb-quiet wbp-small" }),
    bar: element("div", { class: "wbp-bar", role: "progressbar", "aria-label": "Run", hidden: "" }),
    words: element("div", { class: "wbp-small", hidden: "" }),
    left: element("div", { class: "wb-quiet wbp-small" }),
    evidence: evidenceElement(host),
    clear: element("input", { type: "checkbox" }),
    run: element("button", { type: "button", class: "wbp-btn wbp-primary" }, "Run"),
    copy: element("button", { type: "button", class: "wbp-btn" }, "Copy as Python"),
    find: element("button", { type: "button", class: "wbp-btn wbp-wide" }, "Find the best"),
    code: element("pre", { class: "wbp-code", tabindex: "0", hidden: "", "aria-label": "Python of this setting" }),
    copied: element("div", { class: "wb-quiet wbp-small", hidden: "" }),
  };
  parts.fill = element("i", {});
  parts.bar.append(parts.fill);
  parts.run.addEventListener("click", () => host.act(host.job().running ? "cancel" : "run"), { signal });
  parts.find.addEventListener("click", () => host.act("find_best"), { signal });
  parts.clear.addEventListener("change", () => host.set("stop_when_clear", parts.clear.checked), { signal });
  parts.copy.addEventListener("click", () => copyCode(parts, host), { signal });
  parts.root = element(
    "div",
    { class: "wbp-sum" },
    parts.from,
    element("div", {}, parts.rate, " ", parts.half),
    parts.beside,
    parts.why,
    parts.bar,
    parts.words,
    parts.left,
    parts.evidence.root,
    host.live ? element("label", { class: "wbp-flag" }, parts.clear, "Stop when clear") : "",
    element("div", { class: "wbp-buttons" }, parts.run, parts.copy, parts.find),
    parts.code,
    parts.copied,
  );
  return parts;
}

async function copyCode(parts, host) {
  const said = host.said();
  if (!said) return;
  parts.code.textContent = said.code;
  parts.code.hidden = parts.copied.hidden = false;
  parts.copied.textContent = "Copied";
  try {
    await navigator.clipboard.writeText(said.code);
  } catch {
    parts.copied.textContent = "This page may not copy; select the lines above.";
    getSelection().selectAllChildren(parts.code);
  }
}

const SOURCES = { measured: "This setting, measured", predicted: "This setting, predicted" };

function updateSummary(parts, host) {
  const said = host.said();
  const job = host.job();
  parts.from.textContent = said ? SOURCES[said.source] || "This setting" : "This setting";
  parts.rate.textContent = said ? said.rate : "";
  parts.half.textContent = said && said.rate ? `${said.half} steps/s` : "";
  parts.beside.textContent = said ? said.beside : host.live ? "…" : "This setting is not stored in the page.";
  // the reason stands once, not beside each toggle
  const why = said && said.unpredicted && !said.beside.includes(said.unpredicted) ? said.unpredicted : "";
  parts.why.textContent = why;
  parts.bar.hidden = !job.running;
  parts.bar.classList.toggle("wbp-unknown", job.running && job.share === null);
  parts.fill.style.width = job.share === null ? "" : `${100 * job.share}%`;
  if (job.share === null) parts.bar.removeAttribute("aria-valuenow");
  else parts.bar.setAttribute("aria-valuenow", String(Math.round(100 * job.share)));
  parts.words.textContent = job.words;
  parts.words.hidden = !job.words;
  parts.left.textContent = [job.left, job.result, job.machine].filter(Boolean).join(". ");
  parts.evidence.update();
  parts.clear.checked = Boolean(host.get("stop_when_clear"));
  parts.clear.disabled = !host.live || job.running;
  parts.run.textContent = runWords(host);
  parts.run.classList.toggle("wbp-primary", !job.running);
  parts.run.disabled = parts.find.disabled = !host.live;
  parts.find.hidden = job.running;
  parts.copy.disabled = !said;
  if (!said || parts.code.textContent !== said.code) parts.code.hidden = parts.copied.hidden = true;
}

export function runWords(host) {
  const said = host.said();
  if (host.job().running) return "Cancel";
  return said && said.ran ? "Run again" : "Run";
}

// A part of the column: its toggles, and a fold with those that are not needed at first.
function sectionElement([key, title], groups, open) {
  const root = element("div", { class: "wbp-section", role: "group", "aria-label": title, "data-section": key });
  root.append(element("div", { class: "wbp-kind" }, title));
  const folded = groups.filter(({ group }) => group.more);
  root.append(...groups.filter(({ group }) => !group.more).map((one) => one.root));
  if (!folded.length) return { key, root, folded };
  const summary = element("summary", {});
  const inner = element("div", { class: "wbp-folded" }, ...folded.map((one) => one.root));
  const fold = element("details", { class: "wbp-more", open: open ? "" : null }, summary, inner);
  root.append(fold);
  return { key, root, folded, fold, summary };
}

function updateSection({ folded, summary }, host) {
  if (!summary) return;
  const on = folded.filter(({ group }) => isSwitched(group, host.get)).length;
  summary.textContent = `More (${folded.length})${on ? `, ${on} switched` : ""}`;
}

export function togglesColumn(host, signal) {
  const summary = summaryElement(host, signal);
  const root = element("div", { class: "wbp-left" }, summary.root);
  let groups = [];
  let sections = [];
  // what a program refuses may be known only once its graphs were built
  const rebuild = () => {
    const first = !sections.length;
    const open = new Set(sections.filter(({ fold }) => fold && fold.open).map(({ key }) => key));
    for (const one of sections) one.root.remove();
    groups = host.view.groups.map((group, i) => groupElement(group, i, host, signal));
    const begins = ({ group }) => first && group.more && isSwitched(group, host.get);
    sections = host.view.sections.flatMap((section) => {
      const own = groups.filter(({ group }) => group.section === section[0]);
      return own.length ? [sectionElement(section, own, open.has(section[0]) || own.some(begins))] : [];
    });
    root.prepend(...sections.map((one) => one.root));
  };
  rebuild();
  return {
    root,
    rebuild,
    update() {
      for (const made of groups) updateGroup(made, host, host.said());
      for (const section of sections) updateSection(section, host);
      updateSummary(summary, host);
    },
    flash(key) {
      const made = groups.find(({ group }) => group.key === key);
      if (!made) return;
      const holder = made.root.closest("details");
      if (holder) holder.open = true;
      made.root.classList.remove("wbp-flash");
      void made.root.offsetWidth;
      made.root.classList.add("wbp-flash");
    },
  };
}

// The column of toggles: built once, then kept up to date in place, so that the focus stays.
import { element } from "../shared/dom.js";
import { isSwitched, setOption, steppedNumber, valueOfGroup } from "./setting.js";

function chipElement({ kind, text, title }) {
  const mark = element("i", { class: `wbp-mark wbp-${kind}`, "aria-hidden": "true" });
  return element("span", { class: "wbp-chip", title: title || null }, mark, text);
}

// Options that are refused for one reason share the sentence that says so.
function refusedId(name, options, option) {
  const first = options.find((one) => one.refused === option.refused);
  return `${name}-${first.value}-refused`;
}

function listElement(group, name, host, signal) {
  const list = element("select", { class: "wbp-list", "aria-label": group.title });
  for (const option of group.options) {
    const attributes = { value: option.value, "data-label": option.label, title: option.refused || null };
    const words = option.help ? `${option.label}: ${option.help.replace(/\.$/, "")}` : option.label;
    list.append(element("option", attributes, words));
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

// Why options cannot be had, folded away; those that share a reason share its sentence.
function whyNotElements(group, name) {
  const reasons = new Map(group.options.map((one) => [one.refused, refusedId(name, group.options, one)]));
  reasons.delete("");
  if (!reasons.size) return [];
  const words = [...reasons].map(([reason, id]) => element("p", { class: "wbp-help", id }, reason));
  return [element("details", { class: "wbp-whynot" }, element("summary", {}, "Why not all?"), ...words)];
}

// The numbers beside a choice, and its flag: a block of the fold.
function foldedElement(made, name, host, signal) {
  const { group, numbers } = made;
  const head = element("div", { class: "wbp-head" }, element("span", { class: "wb-strong" }, group.folded));
  const rows = element("div", { class: "wbp-two" }, ...numbers.map((one) => one.row));
  const root = element("div", { class: "wbp-group", "data-group": `${group.key}-folded` }, head, rows);
  root.append(...numbers.map((one) => one.warns).filter(Boolean));
  if (group.flag) {
    made.flag = flagElement(group.flag, name, host, signal);
    root.append(...made.flag.rows);
  }
  return root;
}

function groupElement(group, number, host, signal) {
  const name = `wbp-${host.id}-${number}`;
  const head = element("div", { class: "wbp-head" }, element("span", { class: "wb-strong", title: group.help }, group.title));
  const root = element("div", { class: "wbp-group", "data-group": group.key }, head);
  const made = { root, group, numbers: group.numbers.map((one) => numberElement(one, group.title, host, signal)) };
  made.help = element("p", { class: "wbp-help" }, group.help);
  if (group.options.length) {
    made.choice = choiceElement(group, name, host, signal);
    root.append(made.choice);
    if (group.folded) made.folded = foldedElement(made, name, host, signal);
  } else head.append(...made.numbers.map((one) => one.row));
  // what the setting now excludes, and what a switched toggle means
  made.why = element("p", { class: "wbp-help", id: `${name}-excluded`, hidden: "" });
  made.warns = element("p", { class: "wbp-help", hidden: "" });
  made.chips = element("div", { class: "wbp-chips" });
  root.append(made.help, ...whyNotElements(group, name), made.why, made.warns, made.chips);
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
  made.help.textContent = (!group.listed && chosen?.help) || (chosen?.help ? "" : group.help);
  made.help.hidden = !made.help.textContent;
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

// What a block of the fold has of a group: its numbers and flag, or the toggle itself.
function foldedPart({ group, root, folded, numbers }) {
  if (group.more) return [{ root, count: 1, on: (get) => Number(isSwitched(group, get)) }];
  if (!folded) return [];
  const keys = [...numbers.map(({ number }) => number.key), ...(group.flag ? [group.flag.key] : [])];
  return [{ root: folded, count: keys.length, on: (get) => keys.filter((key) => get(key)).length }];
}

// A part of the column: its toggles, and a fold with those that are not needed at first.
function sectionElement([key, title], groups, open) {
  const root = element("div", { class: "wbp-section", role: "group", "aria-label": title, "data-section": key });
  root.append(element("div", { class: "wbp-kind" }, title));
  const parts = groups.flatMap(foldedPart);
  root.append(...groups.filter(({ group }) => !group.more).map((one) => one.root));
  if (!parts.length) return { key, root, parts };
  const summary = element("summary", {});
  const inner = element("div", { class: "wbp-folded" }, ...parts.map((one) => one.root));
  const fold = element("details", { class: "wbp-more", open: open ? "" : null }, summary, inner);
  root.append(fold);
  return { key, root, parts, fold, summary };
}

function updateSection({ parts, summary }, host) {
  if (!summary) return;
  const sum = (all) => all.reduce((before, one) => before + one, 0);
  const on = sum(parts.map((part) => part.on(host.get)));
  summary.textContent = `More (${sum(parts.map(({ count }) => count))})${on ? `, ${on} switched` : ""}`;
}

export function togglesColumn(host, signal) {
  const root = element("div", { class: "wbp-left", role: "group", "aria-label": "Toggles" });
  let groups = [];
  let sections = [];
  // what a program refuses may be known only once its graphs were built
  const rebuild = () => {
    const first = !sections.length;
    const open = new Set(sections.filter(({ fold }) => fold && fold.open).map(({ key }) => key));
    for (const one of sections) one.root.remove();
    groups = host.view.groups.map((group, i) => groupElement(group, i, host, signal));
    const begins = (made) => first && foldedPart(made).some(({ on }) => on(host.get));
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

// The setting of the toggles: its fields in the order of Python's PanelSetting, and its key.
export const SETTING_FIELDS = [
  "stage", "capacity", "threads", "thread_pool", "stale_lookups", "fusion", "executor",
  "inter_op_threads", "intra_op_threads", "batch_size", "cut", "chosen",
];
const OF_STAGE = ["capacity", "threads", "thread_pool"];
const FOUND_STAGES = ["smart", "moved"];

// Options of a stage that is not there make no other setting, and a stage of the program's own has
// an item and a thread where nothing is said, and no stale lookups. Where the line was moved to
// counts where it is chosen.
export function settingKey(values) {
  const { stage } = values;
  const each = (name) => {
    if (name === "chosen") return chosenKey(values.chosen);
    if (name === "cut") return stage === "moved" ? values.cut : "";
    if (name === "stale_lookups" && !FOUND_STAGES.includes(stage)) return "0";
    if (stage === "off" && OF_STAGE.includes(name)) return "0";
    if (stage === "own" && values[name] === 0 && ["capacity", "threads"].includes(name)) return "1";
    return String(typeof values[name] === "boolean" ? Number(values[name]) : values[name]);
  };
  return SETTING_FIELDS.map(each).join("|");
}

// The choices of toggles, by name; those at their usual choice are not among them.
function chosenKey(chosen) {
  const names = Object.keys(chosen).sort();
  return names.length ? JSON.stringify(names.map((name) => [name, chosen[name]])) : "";
}

// Where the toggle of a group stands: its option, or its number.
export function valueOfGroup(group, get) {
  if (!group.toggle) return get(group.key);
  const { [group.toggle]: choice = group.options[0].value } = get("chosen");
  return choice;
}

// Whether it stands elsewhere than usual.
export function isSwitched(group, get) {
  return valueOfGroup(group, get) !== (group.options.length ? group.options[0].value : 0);
}

// The choices with one toggle elsewhere; at the usual choice it is not among them.
function chosenWith(group, value, chosen) {
  const { [group.toggle]: _, ...others } = chosen;
  return value === group.options[0].value ? others : { ...others, [group.toggle]: value };
}

// 0 is left to the plan or the program; below it there is nothing
export function steppedNumber(value, by, { step, most }) {
  return Math.max(0, Math.min(most, value + by * step));
}

// Puts the toggle of a group elsewhere.
export function setOption(group, value, host) {
  if (group.toggle) host.set("chosen", chosenWith(group, value, host.get("chosen")));
  else host.set(group.key, value);
}

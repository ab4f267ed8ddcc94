// The setting of the toggles: its fields in the order of Python's PanelSetting, and its key.
export const SETTING_FIELDS = [
  "stage", "capacity", "threads", "thread_pool", "stale_lookups", "fusion", "executor",
  "inter_op_threads", "intra_op_threads", "batch_size", "cut",
];
const OF_STAGE = ["capacity", "threads", "thread_pool"];
const FOUND_STAGES = ["smart", "moved"];

// Options of a stage that is not there make no other setting, and a stage of the program's own has
// an item and a thread where nothing is said, and no stale lookups. Where the line was moved to
// counts where it is chosen.
export function settingKey(values) {
  const { stage } = values;
  const each = (name) => {
    if (name === "cut") return stage === "moved" ? values.cut : "";
    if (name === "stale_lookups" && !FOUND_STAGES.includes(stage)) return "0";
    if (stage === "off" && OF_STAGE.includes(name)) return "0";
    if (stage === "own" && values[name] === 0 && ["capacity", "threads"].includes(name)) return "1";
    return String(typeof values[name] === "boolean" ? Number(values[name]) : values[name]);
  };
  return SETTING_FIELDS.map(each).join("|");
}

// 0 is left to the plan or the program; below it there is nothing
export function steppedNumber(value, by, { step, most }) {
  return Math.max(0, Math.min(most, value + by * step));
}

// Port of two functions of format.py: same integers, same thresholds; a test compares every string.
export const NBSP = "\u00a0";
const THIN = "\u2009";
const MINUS = "\u2212";
const UNKNOWN = "–";

// below this many ns, unit, ns in a unit, decimals
const UNIT_STEPS = [
  [100, "ns", 1, 0],
  [9950, "µs", 1e3, 1],
  [99500, "µs", 1e3, 0],
  [995000, "ms", 1e6, 2],
  [99950000, "ms", 1e6, 1],
  [999500000, "ms", 1e6, 0],
  [99950000000, "s", 1e9, 1],
  [Infinity, "s", 1e9, 0],
];

export function integer(value) {
  const digits = String(Math.abs(value)).replace(/\B(?=(\d{3})+$)/g, THIN);
  return (value < 0 ? MINUS : "") + digits;
}

// value / scale with that many decimals, rounded half up, from integers alone
export function fixed(value, scale, decimals) {
  const power = 10 ** decimals;
  const whole = Math.floor(value / scale);
  let scaled = Math.floor((2 * (value - whole * scale) * power + scale) / (2 * scale));
  const carry = scaled >= power ? 1 : 0;
  scaled -= carry * power;
  const rest = decimals ? "." + String(scaled).padStart(decimals, "0") : "";
  return integer(whole + carry) + rest;
}

export function duration(ns) {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return UNKNOWN;
  const whole = Math.floor(ns + 0.5);
  if (whole === 0) return "0" + NBSP + "ms";
  const size = Math.abs(whole);
  const [, unit, scale, decimals] = UNIT_STEPS.find(([below]) => size < below);
  return (whole < 0 ? MINUS : "") + fixed(size, scale, decimals) + NBSP + unit;
}

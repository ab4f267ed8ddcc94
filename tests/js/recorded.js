// A canvas that writes down what is drawn on it, a line for each call.
const rounded = (value) => (typeof value === "number" ? Number(value.toFixed(3)) : value);
const SET = ["fillStyle", "strokeStyle", "globalAlpha", "lineWidth", "font", "textAlign", "textBaseline"];
const words = (args) => args.map((arg) => (Array.isArray(arg) ? arg.join(" ") : rounded(arg))).join(" ");

// the width of a letter, whatever the font
export const LETTER = 6;

export class RecordedPath extends Array {
  moveTo(...at) {
    this.push(`M${words(at)}`);
  }

  lineTo(...at) {
    this.push(`L${words(at)}`);
  }
}

// what a call was drawn with: colors and their opacity
const INK_OF = { fillRect: "fillStyle", fill: "fillStyle", fillText: "fillStyle", strokeRect: "strokeStyle", stroke: "strokeStyle" };

export function recordedContext() {
  const lines = [];
  const own = { globalAlpha: 1, fillStyle: "", strokeStyle: "", wbFont: "" };
  const ctx = new Proxy(own, {
    get(target, name) {
      if (name === "lines") return lines;
      if (name === "measureText") return (text) => ({ width: LETTER * text.length });
      if (name in target || SET.includes(name) || typeof name !== "string") return target[name];
      return (...args) => {
        const ink = INK_OF[name] ? ` ${target[INK_OF[name]]}` : "";
        const faint = INK_OF[name] && target.globalAlpha !== 1 ? ` at ${rounded(target.globalAlpha)}` : "";
        lines.push(`${name} ${words(args)}${ink}${faint}`.trim());
      };
    },
  });
  return ctx;
}

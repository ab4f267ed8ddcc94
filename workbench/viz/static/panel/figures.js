// Figures that plotly draws, once a button asks for one. Its script comes from the kernel, once a page.
import { element } from "../shared/dom.js";
import { prefersDark } from "../shared/theme.js";

const PLOTLY = Symbol.for("workbench.plotly");

async function moduleOf(bytes) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "text/javascript" }));
  try {
    return (await import(url)).default;
  } finally {
    URL.revokeObjectURL(url);
  }
}

// Whoever asks first is sent the script; a page has one, whatever the number of its panels.
async function askFigure(host, key, name, width) {
  const theme = prefersDark() ? "dark" : "light";
  const answer = await host.figure(key, { name, theme, width, script: !globalThis[PLOTLY] });
  if (answer.error) throw new Error(answer.error);
  if (answer.data) globalThis[PLOTLY] = await moduleOf(answer.data);
  return { ...answer, plotly: globalThis[PLOTLY] };
}

async function drawFigure(holder, { plotly, figure, config, code }, signal) {
  const box = element("div", { class: "wbp-figure" });
  const words = element("p", { class: "wb-quiet" }, "In a cell: ", element("code", {}, code));
  holder.replaceChildren(box, words);
  await plotly.newPlot(box, figure.data, figure.layout, config);
  signal.addEventListener("abort", () => plotly.purge(box));
}

// Buttons for the figures of a tab, and below them the one that is open.
export function figuresElement(host, key, figures, signal) {
  const holder = element("div", { "aria-live": "polite" });
  let open = null; // its button, and what ends its drawing
  const close = () => {
    open.life.abort();
    open.button.setAttribute("aria-expanded", "false");
    holder.replaceChildren();
    open = null;
  };
  const show = async (name, button) => {
    const life = new AbortController();
    open = { button, life };
    button.setAttribute("aria-expanded", "true");
    holder.replaceChildren(element("p", { class: "wb-quiet" }, "Drawing"));
    try {
      const answer = await askFigure(host, key, name, holder.clientWidth);
      if (!life.signal.aborted) await drawFigure(holder, answer, life.signal);
    } catch (error) {
      if (!life.signal.aborted) holder.replaceChildren(element("p", { class: "wb-sentence" }, error.message));
    }
  };
  signal.addEventListener("abort", () => open && close());
  const buttons = figures.map(([name, title]) => {
    const button = element("button", { type: "button", class: "wbp-btn", "aria-expanded": "false" }, title);
    button.addEventListener("click", () => {
      const again = open && open.button === button;
      if (open) close();
      if (!again) show(name, button);
    }, { signal });
    return button;
  });
  const bar = element("div", { class: "wbp-charts", role: "group", "aria-label": "Charts" }, ...buttons);
  return element("div", {}, bar, holder);
}

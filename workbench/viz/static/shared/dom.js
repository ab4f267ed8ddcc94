// Elements from plain values. Text is always set as text: no string here is ever parsed as markup.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// the name of a kind of element; nothing is asked for at it
const SVG_NS = ["http:", "", "www.w3.org", "2000", "svg"].join("/");

export function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS(SVG_NS, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function keyHints(keys) {
  const pairs = keys.map(([names, words]) =>
    element("span", {}, ...names.map((name) => element("kbd", {}, name)), words),
  );
  return element("div", { class: "wb-keys wb-quiet" }, ...pairs);
}

// JupyterLab's shortcuts look at the focused element before the ones around it, so they are turned
// off on whatever takes the focus.
export function suppressShortcuts(root, signal) {
  const suppress = (one) => {
    one.dataset.lmSuppressShortcuts = "true";
  };
  suppress(root);
  root.addEventListener("focusin", (event) => suppress(event.target), { signal });
}

// A widget's still picture is an output of its own, hidden while a view of the widget lives. By a
// rule: an output that is shown anew is another element.
export function hideStill(name, signal) {
  const rule = element("style", {}, `.${CSS.escape(name)} { display: none; }`);
  document.head.append(rule);
  signal.addEventListener("abort", () => rule.remove());
}

// The still picture of a mounted view stays in the page, hidden, and is what gets printed: a canvas
// is drawn for the screen, and a browser may lay the page out for paper without drawing it again.
export function keepForPaper(root, still) {
  root.after(element("div", { class: `${root.className} wb-paper` }, ...still));
}

// The page inside a notebook's frame. The frame has the theme of the notebook, is as tall as its
// page, and takes the place of the still picture that stands before it.
import { prefersDark, watchTheme } from "../shared/theme.js";

const PAPER_WIDTH = 600; // px that A4 leaves a notebook's output
const THEME_OF_BODY = ["data-jp-theme-light", "data-vscode-theme-kind"];

function copyAttribute(name, from, to) {
  const value = from.getAttribute(name);
  if (value === null) to.removeAttribute(name);
  else to.setAttribute(name, value);
}

// What the style sheet asks of the notebook's theme does not reach into a frame: it is copied.
function followNotebook(notebook, page, signal) {
  const sheet = page.querySelector("style").textContent;
  const tokens = new Set(sheet.match(/--jp-[\w-]+/g));
  const follow = () => {
    const theirs = getComputedStyle(notebook.body);
    for (const token of tokens) page.body.style.setProperty(token, theirs.getPropertyValue(token));
    for (const name of THEME_OF_BODY) copyAttribute(name, notebook.body, page.body);
    copyAttribute("theme", notebook.documentElement, page.documentElement);
  };
  follow();
  watchTheme(signal, follow, notebook);
}

// mounts: what brings the views of the page to life, each to the list of those that stand
export async function showFrame(mounts, page = document) {
  // null where the notebook's page is another origin's: then its still picture stays
  const frame = window.frameElement;
  if (!frame) return;
  const life = new AbortController();
  const { signal } = life;
  // a notebook may take its outputs out of the page and put them back: then the frame loads again
  addEventListener("pagehide", () => life.abort(), { signal });
  followNotebook(frame.ownerDocument, page, signal);
  const paint = () => {
    page.body.dataset.wbTheme = prefersDark() ? "dark" : "light";
  };
  paint();
  watchTheme(signal, paint);
  const wanted = page.querySelectorAll("[data-wb-timeline], [data-wb-boundary], [data-wb-panel]").length;
  const views = (await Promise.all(mounts.map((each) => each(page)))).flat();
  if (views.length < wanted) return;
  const fit = () => {
    frame.style.height = `${page.body.offsetHeight}px`;
  };
  new ResizeObserver(fit).observe(page.body);
  fit();
  // Paper is narrower, and the frame cannot follow what it makes of the page.
  addEventListener("beforeprint", () => {
    page.body.style.maxWidth = `${PAPER_WIDTH}px`;
    fit();
    page.body.style.maxWidth = "";
  }, { signal });
  addEventListener("afterprint", fit, { signal });
  frame.previousElementSibling.hidden = true;
}

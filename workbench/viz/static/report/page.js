// A report's page: draws what is in sight, and the rest once its fold is opened.
import { linkPairs } from "../before_after/embed.js";
import { mountBoundaryOf } from "../boundary/embed.js";
import { copyText, sayCopied } from "../shared/copy.js";
import { offerCsv } from "../shared/csv.js";
import { mountTimeline } from "../timeline/control/embed.js";
import { followLink, offerLinks } from "./links.js";

const VIEWS = "[data-wb-timeline], [data-wb-boundary]";

// Mounts the views of a page; returns its timelines.
export async function mountReport(page = document) {
  const standing = new Map();
  const begun = new Set();
  const mountShown = async () => {
    for (const root of page.querySelectorAll(VIEWS)) {
      if (begun.has(root) || root.closest("details:not([open])")) continue;
      begun.add(root);
      if (root.dataset.wbBoundary) await mountBoundaryOf(root, page);
      else standing.set(root, await mountTimeline(root, page));
    }
    linkPairs(page, standing);
    for (const [root, view] of standing) if (view) offerLinks(root, view);
  };
  watchPaper(page);
  watchCopies(page);
  // what a fold holds has no size before it is opened; on paper its still picture stands
  page.addEventListener("toggle", () => !matchMedia("print").matches && mountShown(), { capture: true });
  await followLink(page, mountShown, standing);
  await mountShown();
  offerCsv(page.body, "table");
  return [...standing.values()].filter(Boolean);
}

// Every fold is open on paper, and as it was on the screen.
function watchPaper(page) {
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...page.querySelectorAll("details:not([open])")];
    for (const fold of opened) fold.open = true;
  });
  addEventListener("afterprint", () => {
    for (const fold of opened) fold.open = false;
  });
}

// A button beside code that is there to be pasted.
function watchCopies(page) {
  for (const one of page.querySelectorAll("button[data-copies]")) {
    one.hidden = false;
    one.addEventListener("click", () => {
      sayCopied(one, copyText(page.getElementById(one.dataset.copies).textContent));
    });
  }
}

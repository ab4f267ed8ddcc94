// The picture: boxes in flow order, their links, the line. Boxes never move; the line does.
import { element, svgElement } from "../shared/dom.js";
import { breakable, familyBar, reasonMark } from "./box.js";
import { BOX_W, COLUMN_GAP, linePoints, pillsOf, shareAhead } from "./cut.js";
import { BOX_KEY_WORDS } from "./key_words.js";

export function linkPath(flow, link) {
  const source = flow.boxes[link.source];
  let x = source.x + BOX_W;
  let d = `M${x} ${link.at[0]}`;
  for (let k = 1; k < link.at.length; k += 1) {
    const from = link.at[k - 1];
    // at its new height where the line crosses, in the middle of the gap
    const middle = x + COLUMN_GAP / 2;
    d += `C${middle - 6} ${from} ${x + 6} ${link.at[k]} ${middle} ${link.at[k]}`;
    x += COLUMN_GAP + BOX_W;
    d += `H${k + 1 < link.at.length ? x : x - BOX_W}`;
  }
  return d;
}

function linkElements(view) {
  return view.flow.links
    .filter((link) => link.at.length)
    .map((link) => {
      const name = (place) => view.boxes[view.flow.boxes[place].box].title;
      const words = `${name(link.source)} → ${name(link.target)}: ${link.words}`;
      const d = linkPath(view.flow, link);
      return svgElement(
        "g",
        { class: "wbb-link-line", "data-link": `${link.source}>${link.target}` },
        svgElement("title", {}, words),
        svgElement("path", { d, "stroke-width": link.width }),
        svgElement("path", { d, class: "wbb-hit" }),
      );
    });
}

function nodeWords(view, box, state) {
  const facts = [box.time, box.about].filter(Boolean).join(", ");
  const parts = [
    // of a name the end tells more than the beginning
    element(
      "span",
      { class: box.label.includes(" ") ? "wbb-label" : "wbb-label wbb-name" },
      element("bdi", { dir: "ltr" }, box.label),
    ),
    element("span", { class: "wbb-about" }, element("span", {}, facts)),
  ];
  const mark = state === "stay" ? box.marks[0] : undefined;
  parts.push(
    mark === undefined
      ? element("span", { class: "wbb-family" }, view.families[box.family][0])
      : reasonMark(view, mark),
  );
  return parts;
}

function tickElement(title, place) {
  return element(
    "label",
    { class: "wbb-tick" },
    element("input", {
      type: "checkbox",
      tabindex: "-1",
      "data-tick": place,
      "aria-label": `${title} runs ahead`,
    }),
  );
}

function nodeElement(view, place) {
  const { x, y, state, box: at } = view.flow.boxes[place];
  const box = view.boxes[at];
  const pick = element(
    "button",
    { type: "button", class: "wbb-pick", "data-box": at, "aria-pressed": "false", title: box.title },
    ...nodeWords(view, box, state),
  );
  const made = element(
    "div",
    {
      class: `wbb-box wbb-${state}`,
      "data-place": place,
      style: `left: ${x}px; top: ${y}px; ${familyBar(box.family)}`,
    },
    pick,
  );
  if (state === "move") made.append(tickElement(box.title, place));
  return made;
}

export function flowElement(view, parts) {
  const { flow } = view;
  const size = { width: flow.width, height: flow.height, viewBox: `0 0 ${flow.width} ${flow.height}` };
  parts.line = svgElement("polyline", { class: "wbb-line" });
  parts.ahead = svgElement("polygon", { class: "wbb-ground" });
  parts.pills = element("div", { class: "wbb-pills", "aria-hidden": "true" });
  parts.handle = element("button", {
    type: "button", class: "wbb-handle", role: "slider", "aria-label": "Boundary line", "aria-valuemin": 0,
  }, "‹ ›");
  parts.boxes = element(
    "div", { class: "wbb-boxes", "data-region": "flow" }, ...flow.boxes.map((_, place) => nodeElement(view, place)),
  );
  const canvas = element(
    "div",
    { class: "wbb-canvas", style: `width: ${flow.width}px; height: ${flow.height}px` },
    svgElement("svg", { ...size, class: "wbb-back", "aria-hidden": "true" }, parts.ahead, ...linkElements(view)),
    parts.boxes,
    svgElement("svg", { ...size, class: "wbb-front", "aria-hidden": "true" }, parts.line),
    parts.pills,
  );
  const movable = flow.leaves.length > 0;
  if (movable) canvas.append(parts.handle);
  parts.canvas = canvas;
  parts.frame = element(
    "div",
    { class: `wbb-flow${flow.solid ? "" : " wbb-open-line"}`, role: "group", "aria-label": `Both sides in flow order. ${BOX_KEY_WORDS}` },
    canvas,
  );
  return parts.frame;
}

// the stages and the compute side by name, from left to right
export function sidesElement(view) {
  const names = view.areas.map(({ title, about }) =>
    element("li", {}, element("span", { class: "wb-strong" }, ...breakable(title)), element("span", { class: "wb-quiet" }, ` ${about}`)),
  );
  return element("ol", { class: "wbb-sides" }, ...names);
}

// what changes when the line moves; every box stays where it is
export function drawCut(view, parts, ahead, found) {
  const { flow } = view;
  const points = linePoints(flow, ahead);
  const text = points.map((point) => point.join(",")).join(" ");
  parts.line.setAttribute("points", text);
  parts.ahead.setAttribute("points", `0,0 ${text} 0,${flow.height}`);
  for (const one of parts.boxes.children) {
    const place = Number(one.dataset.place);
    const share = shareAhead(flow.boxes[place], ahead);
    one.classList.toggle("wbb-is-ahead", share === 1);
    one.classList.toggle("wbb-is-part", share > 0 && share < 1);
    const tick = one.querySelector("input");
    if (tick) Object.assign(tick, { checked: share === 1, indeterminate: share > 0 && share < 1 });
  }
  for (const line of parts.canvas.querySelectorAll("[data-link]")) {
    line.classList.toggle("wbb-cross", found.links.has(line.dataset.link));
  }
  parts.pills.replaceChildren(
    ...pillsOf(flow, ahead, points, found).map((pill) =>
      element("span", { class: "wbb-pill", style: `left: ${pill.x}px; top: ${pill.y}px`, "data-pill": pill.box }, String(pill.count)),
    ),
  );
  return points;
}

// a plan that was read from JSON has no graph: its boxes by name
export function areasElement(view) {
  return element(
    "div",
    { class: "wbb-lists" },
    ...view.areas.map((area) =>
      element(
        "section",
        { "aria-label": area.title },
        element("div", { class: "wb-strong" }, area.title),
        element("div", { class: "wb-quiet" }, area.about),
        element(
          "ul",
          {},
          ...area.regions.flatMap((region) =>
            region.boxes.map((place) => element("li", {}, `${view.boxes[place].label}, ${view.boxes[place].about}`)),
          ),
        ),
      ),
    ),
  );
}

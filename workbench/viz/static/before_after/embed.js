// Pairs of timelines: in a report's page, where their data stands, and in a pane of the panel.
import { inflate } from "../shared/unpack.js";
import { mount } from "../timeline/control/mount.js";
import { linkTimelines } from "./link.js";

// the places of the timelines of a pair: elements whose data-wb-side is the name of a side
function sidesOf(root) {
  const places = [...root.querySelectorAll("[data-wb-side]")];
  return { places, labels: places.map((place) => place.dataset.wbSide) };
}

// Links the pairs of a page, each once both of its timelines stand.
//   standing: the mounted timelines by their element.
export function linkPairs(page, standing) {
  for (const root of page.querySelectorAll("[data-wb-pair]:not([data-wb-linked])")) {
    const { places, labels } = sidesOf(root);
    const views = places.map((place) => standing.get(place.querySelector("[data-wb-timeline]")));
    if (views.some((view) => !view)) continue;
    linkTimelines(root, views, labels, { signal: new AbortController().signal });
    root.dataset.wbLinked = "true";
  }
}

// Mounts and links the pair in an element.
//   headers, datas: of both timelines; packed: whether the data is deflated.
export async function mountPair(holder, { headers, datas, packed }, { signal, onNode }) {
  const root = holder.querySelector("[data-wb-pair]");
  const { places, labels } = sidesOf(root);
  const bytes = await Promise.all(datas.map((data) => (packed ? inflate(data) : data)));
  const views = places.map((place, side) => {
    const drawn = document.createElement("div");
    place.append(drawn);
    return mount(drawn, headers[side], bytes[side], { signal });
  });
  return linkTimelines(root, views, labels, { signal, onNode });
}

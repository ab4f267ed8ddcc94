// One box of the picture: its family, name, how many nodes, why it stays; a button to open it.
export function familyBar(family) {
  return `--wbb-family: var(--wb-f${family})`;
}

// a name that may break after its scopes and words, not inside them
export function breakable(text) {
  return text.split(/(?<=[/_…])|(?<=[a-z])(?=[A-Z])/).flatMap((part, k) => (k ? [element("wbr"), part] : [part]));
}

// code and words of a reason; where space is short the words stand in the panel and in the filter
export function reasonMark(view, place, short = false) {
  const { code, word, refused } = view.reasons[place];
  const made = element("span", { class: refused ? "wbb-mark" : "wbb-mark wbb-left" });
  made.append(element("span", { class: "wbb-code" }, code));
  if (short) made.setAttribute("title", word);
  else made.append(` ${word}`);
  return made;
}

function boxWords(view, box, near) {
  const about = box.reads ? `${box.about}, reads ${box.reads}` : box.about;
  const words = [
    element("span", { class: "wbb-label" }, ...breakable(box.label)),
    element(
      "span",
      { class: "wbb-about" },
      element("span", {}, about),
      element("span", { class: "wbb-family" }, view.families[box.family][1]),
    ),
  ];
  const marks = near ? box.marks.slice(0, 2) : [];
  for (const place of marks) words.push(reasonMark(view, place));
  if (marks.length && box.held_by) {
    words.push(element("span", { class: "wbb-held wb-mono" }, ...breakable(box.held_by)));
  }
  return words;
}

// near: it stands at the boundary, so its reason is spelled out
export function boxElement(view, place, near) {
  const box = view.boxes[place];
  const pick = element(
    "button",
    { type: "button", class: "wbb-pick", "data-box": place, "aria-pressed": "false" },
    ...boxWords(view, box, near),
  );
  const made = element("div", { class: "wbb-box", style: familyBar(box.family) }, pick);
  if (box.boxes.length) {
    made.append(
      element(
        "button",
        {
          type: "button",
          class: "wbb-open",
          "data-open": place,
          tabindex: "-1",
          "aria-label": `Open ${box.title}`,
        },
        "›",
      ),
    );
  }
  return made;
}

export function familyLegend(view) {
  const shown = new Set(view.areas.flatMap((a) => a.regions.flatMap((r) => r.boxes)));
  const families = new Set([...shown].map((place) => view.boxes[place].family));
  const items = [...families]
    .sort((a, b) => a - b)
    .map((f) =>
      element(
        "li",
        {},
        element("span", { class: "wbb-swatch", style: familyBar(f), "aria-hidden": "true" }),
        view.families[f][0],
        element("span", { class: "wb-quiet" }, ` ${view.families[f][1]}`),
      ),
    );
  return element("ul", { class: "wb-legend", "aria-label": "Op families" }, ...items);
}

// What the blocks so far say: a dot for each round, and the interval that shrinks around the mean.
import { element, svgElement } from "../shared/dom.js";

const WIDE = 232;
const HIGH = 24;
const EDGE = 4;

const evidenceX = (part) => EDGE + part * (WIDE - 2 * EDGE);

function evidencePicture(row, one) {
  const picture = svgElement("svg", { class: "wbp-dots", viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" });
  const line = (name, x1, y1, x2, y2) => picture.append(svgElement("line", { class: name, x1, y1, x2, y2 }));
  line("wbr-limit", evidenceX(one), 0, evidenceX(one), HIGH);
  row.dots.forEach((dot, round) => {
    const now = round === row.dots.length - 1 ? " wbp-dot-now" : "";
    picture.append(svgElement("circle", { class: `wbp-dot${now}`, cx: evidenceX(dot), cy: 8, r: 3 }));
  });
  if (row.low !== null) {
    line("wbp-span", evidenceX(row.low), 18, evidenceX(row.high), 18);
    for (const edge of [row.low, row.high]) line("wbp-span", evidenceX(edge), 15, evidenceX(edge), 21);
  }
  line("wbp-mean", evidenceX(row.at), 14, evidenceX(row.at), 22);
  return picture;
}

// One row for each variant, drawn anew with each round; nothing before the first and after the run.
export function evidenceElement(host) {
  const root = element("div", { class: "wbp-evidence", hidden: "", role: "status", "aria-live": "off" });
  let drawn = "";
  return {
    root,
    update() {
      const { evidence, running } = host.job();
      root.hidden = !evidence || !running;
      const now = JSON.stringify(evidence || null);
      if (now === drawn) return;
      drawn = now;
      const rows = evidence ? evidence.rows : [];
      root.replaceChildren(...rows.flatMap((row) => [
        element(
          "div",
          { class: "wbp-small" },
          element("span", { class: "wb-strong" }, row.label),
          ` ${row.words}, ${row.verdict}`,
          element("span", { class: "wb-quiet" }, ` ${row.rounds}`),
        ),
        evidencePicture(row, evidence.one),
      ]));
    },
  };
}

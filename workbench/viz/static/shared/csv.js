// Tables as files that a spreadsheet opens.
import { element } from "./dom.js";

const QUOTED = /[",\n]/;

// the words of a cell, without what only sets them well; what a drawing says stands in other cells
function cellWords(cell) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  let words = "";
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (node.parentElement.closest("svg")) continue;
    words += (node.previousSibling?.nodeName === "WBR" ? "" : " ") + node.data;
  }
  const plain = words.replace(/[\u2060\u200b]/g, "").replace(/\u2212/g, "-");
  return plain.replace(/\s+/g, " ").trim();
}

function csvField(words) {
  // a spreadsheet takes what begins so for a formula
  const safe = /^[=+@]|^-(?![\d.])/.test(words) ? `'${words}` : words;
  return QUOTED.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function csvOf(table) {
  const lines = [...table.rows].map((row) => [...row.cells].map((cell) => csvField(cellWords(cell))).join(","));
  return `${lines.join("\r\n")}\r\n`;
}

// Puts a button at the caption of every table in an element, which saves it; one has it once.
//   name: of the file, where a table has no caption.
export function offerCsv(root, name = "table") {
  for (const table of root.querySelectorAll("table")) {
    if (table.caption?.querySelector(".wb-csv") || !table.tBodies[0]?.rows.length) continue;
    const caption = table.caption || table.createCaption();
    const words = cellWords(caption);
    const attributes = { type: "button", class: "wb-csv", "aria-label": `Save as CSV: ${words || name}` };
    const save = element("button", attributes, "CSV");
    save.addEventListener("click", (event) => {
      event.stopPropagation();
      saveText(csvOf(table), `${words || name}.csv`.replace(/[^\w.-]+/g, "-"));
    });
    caption.append(" ", save);
  }
}

function saveText(text, name) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  element("a", { href, download: name }).click();
  URL.revokeObjectURL(href);
}

// Lets what is sticky in an element stick to what really scrolls: a notebook's outputs stand in boxes
// that could scroll and never do, and each would hold it.
const HOLDS = ["auto", "hidden", "scroll"];
const SCROLLS = 16; // px that a box hides at least where it is meant to scroll

function boxesAround(root) {
  const boxes = [];
  for (let box = root.parentElement; box && box !== document.body; box = box.parentElement) {
    const { overflowY } = getComputedStyle(box);
    if (!HOLDS.includes(overflowY)) continue;
    if (overflowY !== "hidden" && box.scrollHeight > box.clientHeight + SCROLLS) break;
    boxes.push(box);
  }
  return boxes;
}

export function letStick(root, signal) {
  let boxes = [];
  const undo = () => {
    for (const box of boxes) box.style.removeProperty("overflow");
  };
  // known once the element stands in the page, at its size
  const observer = new ResizeObserver(() => {
    if (!root.isConnected || !root.clientHeight) return;
    observer.disconnect();
    boxes = boxesAround(root).filter((box) => !box.style.overflow);
    for (const box of boxes) box.style.overflow = "clip";
  });
  observer.observe(root);
  signal.addEventListener("abort", () => {
    observer.disconnect();
    undo();
  });
}

// Where a node of the graph stands: in which boxes, and in which row of the refusals.
//   Returns null where it is in none, else {boxes: from the drawn one inwards, row: -1 for none}.
export function placeOfNode(view, name) {
  const innermost = view.boxes.findIndex((box) => box.nodes.includes(name) || box.title === name);
  const row = view.rows.findIndex((one) => one.names.includes(name));
  if (innermost < 0 && row < 0) return null;
  const within = new Map();
  view.boxes.forEach((box, place) => box.boxes.forEach((inner) => within.set(inner, place)));
  const boxes = [];
  for (let at = innermost; at >= 0 && at !== undefined; at = within.get(at)) boxes.unshift(at);
  return { boxes, row };
}

// the node that a pick is of: what a row explains, or a box of one node; "" for a group
export function nodeOfPick(view, box, row) {
  if (row >= 0) return view.rows[row].names[0];
  if (box < 0) return "";
  const { nodes, boxes } = view.boxes[box];
  return nodes.length === 1 && !boxes.length ? nodes[0] : "";
}

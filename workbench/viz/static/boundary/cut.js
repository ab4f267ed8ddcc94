// What a cut is made of, without a page: legality as reachability over leaves, what travels, where
// the line runs. `crossing.py` does the same for the still picture.
export const BOX_W = 140;
export const BOX_H = 60;
export const COLUMN_GAP = 48;
export const ROW_GAP = 14;
export const FLOW_MARGIN = 34;
export const PILL_GAP = 22;
const lineX = (column) => FLOW_MARGIN + column * (BOX_W + COLUMN_GAP) - COLUMN_GAP / 2;

// these leaves and all that they need
export function withNeeds(flow, wanted) {
  const found = new Set();
  const waiting = [...wanted];
  while (waiting.length) {
    const leaf = waiting.pop();
    if (found.has(leaf)) continue;
    found.add(leaf);
    waiting.push(...flow.leaves[leaf].needs);
  }
  return found;
}

// the leaves of `ahead` that need none of those that are removed
export function withoutLeaves(flow, ahead, removed) {
  const followers = flow.leaves.map(() => []);
  flow.leaves.forEach((leaf, place) => leaf.needs.forEach((need) => followers[need].push(place)));
  const gone = new Set();
  const waiting = [...removed];
  while (waiting.length) {
    const leaf = waiting.pop();
    if (gone.has(leaf)) continue;
    gone.add(leaf);
    waiting.push(...followers[leaf]);
  }
  return new Set([...ahead].filter((leaf) => !gone.has(leaf)));
}

export const cutKey = (ahead) => [...ahead].sort((a, b) => a - b).join(",");

// 1 where all of a box runs ahead, 0 where nothing does
export function shareAhead(box, ahead) {
  if (box.state === "fixed") return 1;
  if (!box.leaves.length) return 0;
  return box.leaves.filter((leaf) => ahead.has(leaf)).length / box.leaves.length;
}

// tensors and bytes through the buffer; for each box what it reads out of it; which links cross
export function crossing(flow, ahead) {
  const boxOf = new Map();
  flow.boxes.forEach((box, place) => box.leaves.forEach((leaf) => boxOf.set(leaf, place)));
  const result = { tensors: 0, bytes: 0, unknown: 0, reads: new Map(), links: new Set() };
  const behind = (reader) => reader < 0 || !ahead.has(reader);
  for (const { leaf, count, always, outputs } of flow.makers) {
    if (leaf >= 0 ? !ahead.has(leaf) : !ahead.size) continue;
    if (!always && !outputs.some(([readers]) => readers.some(behind))) continue;
    for (const [readers, bytes] of outputs) {
      result.tensors += count;
      if (bytes < 0) result.unknown += count;
      else result.bytes += count * bytes;
      const boxes = new Set(readers.filter(behind).map((one) => (one < 0 ? -1 - one : boxOf.get(one))));
      for (const box of boxes) {
        result.reads.set(box, (result.reads.get(box) || 0) + count);
        if (leaf >= 0) result.links.add(`${boxOf.get(leaf)}>${box}`);
      }
    }
  }
  return result;
}

// the line as points from top to bottom: straight where whole columns run ahead, else as far right as
// the boxes that stay let it, and past those that run ahead
export function linePoints(flow, ahead) {
  const movable = flow.boxes.filter((box) => box.leaves.length);
  const rest = movable.filter((box) => shareAhead(box, ahead) < 1);
  const columns = movable.map((box) => box.column);
  const free = rest.length ? Math.min(...rest.map((box) => box.column)) : Math.max(-1, ...columns) + 1;
  const left = lineX(free);
  const out = movable.filter((box) => box.column >= free && shareAhead(box, ahead) === 1);
  const far = Math.max(left, ...out.map((box) => lineX(box.column + 1)));
  const half = ROW_GAP / 2;
  const heights = new Set([0, flow.height]);
  for (const box of [...out, ...rest]) heights.add(box.y - half).add(box.y + BOX_H + half);
  const sorted = [...heights].sort((a, b) => a - b);
  const points = [];
  for (let k = 0; k + 1 < sorted.length; k += 1) {
    const [top, end] = [sorted[k], sorted[k + 1]];
    const within = (box) => box.y - half <= top && box.y + BOX_H + half >= end;
    const beside = out.filter(within).map((box) => lineX(box.column + 1));
    const stays = rest.filter(within).map((box) => lineX(box.column));
    const x = Math.max(left, ...(beside.length ? beside : [Math.min(far, ...stays)]));
    points.push([x, top], [x, end]);
  }
  return points;
}

export function lineAt(points, y) {
  for (let k = 0; k < points.length; k += 2) if (y <= points[k + 1][1]) return points[k][0];
  return points[points.length - 1][0];
}

// a pill for each box that reads what travels: where the nearest link to it meets the line
export function pillsOf(flow, ahead, points, found) {
  const pills = [];
  for (const [place, count] of found.reads) {
    const box = flow.boxes[place];
    const links = flow.links.filter(
      (link) => link.target === place && link.at.length && found.links.has(`${link.source}>${place}`),
    );
    let y = box.y + BOX_H / 2;
    let least = 0;
    if (links.length) {
      const column = (link) => flow.boxes[link.source].column;
      const link = links.reduce((best, one) => (column(one) > column(best) ? one : best));
      const x = lineAt(points, link.at[0]);
      least = lineX(column(link) + 1);
      const gap = Math.round((x - lineX(0)) / (BOX_W + COLUMN_GAP)) - 1 - column(link);
      const k = Math.max(0, Math.min(link.at.length - 2, gap));
      y = link.at[k + 1];
    }
    pills.push({ box: place, count, x: Math.min(Math.max(least, lineAt(points, y)), box.x - COLUMN_GAP / 2), y });
  }
  pills.sort((a, b) => a.x - b.x || a.y - b.y || a.box - b.box);
  pills.forEach((pill, k) => {
    const above = pills[k - 1];
    if (above && above.x === pill.x) pill.y = Math.max(pill.y, above.y + PILL_GAP);
  });
  return pills;
}

// which boxes SmartStage's cut has ahead and this one has not, and the other way round
export function differences(flow, ahead) {
  if (flow.smart < 0) return [];
  const wanted = new Set(flow.cuts[flow.smart].leaves);
  const found = [];
  flow.boxes.forEach((box, place) => {
    const more = box.leaves.filter((leaf) => wanted.has(leaf) && !ahead.has(leaf));
    const less = box.leaves.filter((leaf) => !wanted.has(leaf) && ahead.has(leaf));
    if (more.length) found.push({ box: place, adds: true, leaves: more });
    else if (less.length) found.push({ box: place, adds: false, leaves: less });
  });
  return found;
}

export function takeEdit(flow, ahead, edit) {
  if (!edit.adds) return withoutLeaves(flow, ahead, edit.leaves);
  return new Set([...ahead, ...withNeeds(flow, edit.leaves)]);
}

// the cut as a line of code: by what it includes, or by what it leaves, whichever is shorter
export function cutCode(flow, ahead) {
  if (!flow.named) return "plan = boundary_widget.plan  # too many nodes to name here";
  const names = (leaves, kind, drop) =>
    leaves.flatMap((leaf) =>
      flow.leaves[leaf][kind].filter(([others]) => !others.some(drop)).flatMap(([, own]) => own),
    );
  const all = flow.leaves.map((_, leaf) => leaf);
  const included = names(all.filter((leaf) => ahead.has(leaf)), "ends", (leaf) => ahead.has(leaf));
  const excluded = names(all.filter((leaf) => !ahead.has(leaf)), "begins", (leaf) => !ahead.has(leaf));
  const list = (words) => `[${words.map((name) => JSON.stringify(name)).join(", ")}]`;
  if (excluded.length <= included.length || !ahead.size) {
    return `plan = wb.plan(boundary, exclude=${list(excluded)})`;
  }
  return `plan = wb.plan(boundary, include=${list(included)})`;
}

export function byteWords(bytes, unknown) {
  if (!bytes && unknown) return "size not known";
  let words = `${bytes}\u00a0B`;
  for (const [unit, per] of [["kB", 1e3], ["MB", 1e6], ["GB", 1e9]]) {
    if (bytes >= 0.9995 * per) words = `${(bytes / per).toFixed(bytes / per < 9.95 ? 1 : 0)}\u00a0${unit}`;
  }
  return unknown ? `${words} and ${unknown} of unknown size` : words;
}

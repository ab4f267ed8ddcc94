// Where the lanes stand, in px from the top of the canvas.
export const STRIP_HEIGHT = 36;
const RULER_HEIGHT = 20;
const STEP_ROW_HEIGHT = 20;
export const STEP_ROW = STRIP_HEIGHT + RULER_HEIGHT;
export const LANES_TOP = STEP_ROW + STEP_ROW_HEIGHT + 2;
const LANE_HEIGHT = 26;
const BUFFER_HEIGHT = 38;
const LANE_GAP = 4;
const GROUP_END = 8;

// The lane of the critical path has a row only where it is asked for; `of` is the row of each lane.
export function layoutLanes(lanes, path = true) {
  const rows = [];
  const of = [];
  const lines = [];
  let y = LANES_TOP;
  lanes.forEach((lane, k) => {
    if (lane.kind === "critical" && !path) return;
    const height = lane.kind === "buffer" ? BUFFER_HEIGHT : LANE_HEIGHT;
    rows.push((of[k] = { lane, k, y, height }));
    y += height + LANE_GAP;
    const next = lanes.slice(k + 1).find(({ kind }) => path || kind !== "critical");
    if (next && next.group !== lane.group) {
      lines.push(y + GROUP_END - LANE_GAP - 1);
      y += GROUP_END;
    }
  });
  return { rows, of, lines, height: Math.max(y + LANE_GAP, LANES_TOP + LANE_HEIGHT) };
}

export function rowAt(layout, y) {
  return layout.rows.find((row) => y >= row.y - 2 && y <= row.y + row.height + 2) || null;
}

// Header and bytes of a view -> the model that everything else reads. Times are ns from the start
// of the trace, exact in float64.
const ARRAYS = {
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  float64: Float64Array,
};
const VIEW_VERSION = 3;
export const WAIT = 8;
export const RUN = 9;
export const CLASSES = 10; // eight families, waits, runs

function columnsOf(header, bytes) {
  const columns = {};
  for (const [name, type, offset, length] of header.columns) {
    columns[name] = new ARRAYS[type](bytes ? length : 0);
    if (bytes) joinPlanes(columns[name], bytes.subarray(offset));
  }
  return columns;
}

// a column travels as a plane for each byte of its values, the lowest bytes first
function joinPlanes(values, planes) {
  const { length, BYTES_PER_ELEMENT: size } = values;
  const parts = Array.from({ length: size }, (_, k) => planes.subarray(k * length, (k + 1) * length));
  if (size === 1) values.set(parts[0]);
  else if (size === 2) joinTwo(values, ...parts);
  else if (size === 4) joinFour(values, ...parts);
  else {
    const bytes = new Uint8Array(values.buffer);
    parts.forEach((part, k) => part.forEach((byte, i) => (bytes[i * size + k] = byte)));
  }
}

function joinTwo(values, a, b) {
  for (let i = 0; i < values.length; i++) values[i] = a[i] | (b[i] << 8);
}

function joinFour(values, a, b, c, d) {
  for (let i = 0; i < values.length; i++) values[i] = a[i] | (b[i] << 8) | (c[i] << 16) | (d[i] << 24);
}

function words(bytes) {
  return bytes.length ? new TextDecoder().decode(bytes).split("\0") : [];
}

// starts travel as the stretch since the span before in the lane
function startsOf(header, columns) {
  const { idle, dur } = columns;
  const start = new Float64Array(idle.length);
  for (const lane of header.lanes) {
    if (lane.kind === "buffer") continue;
    let at = 0;
    const last = Math.min(lane.first + lane.count, idle.length);
    for (let i = lane.first; i < last; i++) {
      at += idle[i];
      start[i] = at;
      at += dur[i];
    }
  }
  return start;
}

function familiesOf(name, nameFamily) {
  const family = new Uint8Array(name.length);
  for (let i = 0; i < name.length; i++) family[i] = nameFamily[name[i]];
  return family;
}

// Without bytes the model has lanes but no spans: what is drawn while the data is on its way.
export function decode(header, bytes = null) {
  if (header.version !== VIEW_VERSION) {
    throw new Error(
      `Timeline format ${header.version}; this page reads ${VIEW_VERSION}. Run the cell again.`,
    );
  }
  if (bytes && bytes.length < header.bytes) {
    throw new Error(`The trace data has ${bytes.length} of ${header.bytes} bytes.`);
  }
  const columns = columnsOf(header, bytes);
  const stepIndex = new Map();
  const clientOf = new Map(header.lanes.map(({ track, client }) => [track, client]));
  columns.stepNumber.forEach((number, k) => {
    stepIndex.set(`${clientOf.get(columns.stepTrack[k])}:${number}`, k);
  });
  const flowOfRun = new Map();
  const flowOfStep = new Map();
  for (let k = 0; k < columns.flowPut.length; k++) {
    flowOfRun.set(`${header.lanes[columns.flowFrom[k]].track}:${columns.flowRun[k]}`, k);
    const step = columns.flowStep[k];
    flowOfStep.set(step, [...(flowOfStep.get(step) || []), k]);
  }
  return {
    ...columns,
    header,
    lanes: header.lanes,
    duration: header.duration,
    shown: header.shown,
    // what the strip is wide; timelines of one scale have one
    whole: header.whole || header.duration,
    pending: !bytes,
    critical: columns.critical || null,
    pathNames: header.pathNames,
    start: startsOf(header, columns),
    family: familiesOf(columns.name, columns.nameFamily),
    names: words(columns.nameText),
    ops: words(columns.opText),
    sources: words(columns.sourceText),
    stepIndex,
    flowOfRun,
    flowOfStep,
    steps: columns.stepNumber.length,
    typicalStep: middle(columns.stepEnd.map((end, k) => end - columns.stepStart[k])),
  };
}

// -1 for none; steps of two clients may have one number
export function stepOf(model, i) {
  const { client } = model.lanes[laneOf(model, i)];
  return model.stepIndex.get(`${client}:${model.step[i]}`) ?? -1;
}

// the ops of the critical path by time; sorted when they are first asked for
export function pathOrder(model) {
  if (!model.order) {
    const { critical, start } = model;
    const ops = [];
    for (let i = 0; i < critical.length; i++) if (critical[i]) ops.push(i);
    model.order = ops.sort((a, b) => start[a] - start[b]);
  }
  return model.order;
}

function middle(values) {
  return values.length ? values.slice().sort()[values.length >> 1] : 0;
}

export function laneOf(model, i) {
  return model.lanes.findIndex(
    (lane) => lane.kind !== "buffer" && i >= lane.first && i < lane.first + lane.count,
  );
}

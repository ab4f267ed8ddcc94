// Spans in chunks of 16 that follow each other: where all of a chunk lies in one pixel, it is added at
// once. Each table is made when it is first needed.
import { CLASSES } from "./decode.js";

export const CHUNK = 16;

// whether any span of each chunk passes a test
function anyOf(model, test) {
  const count = model.name.length;
  const any = new Uint8Array(Math.ceil(count / CHUNK));
  for (let i = 0; i < count; i++) if (test(i)) any[(i / CHUNK) | 0] = 1;
  return any;
}

// time of each chunk by family, [chunk * CLASSES + family] in ns
export function chunkTimes(model) {
  if (!model.chunkTimes) {
    const { dur, family, name } = model;
    const times = new Float64Array(Math.ceil(name.length / CHUNK) * CLASSES);
    for (let i = 0; i < name.length; i++) times[((i / CHUNK) | 0) * CLASSES + family[i]] += dur[i];
    model.chunkTimes = times;
  }
  return model.chunkTimes;
}

// whether a chunk holds a span that is searched for; null without a search
export function chunkHits(model, matches) {
  if (!matches) return null;
  if (model.chunkHits?.of !== matches) {
    const { name } = model;
    model.chunkHits = { of: matches, any: anyOf(model, (i) => matches[name[i]] === 1) };
  }
  return model.chunkHits.any;
}

// whether a chunk holds an op of the critical path; null where it is not lit
export function chunkPaths(model, critical) {
  if (!critical) return null;
  model.chunkPaths ||= anyOf(model, (i) => critical[i] === 1);
  return model.chunkPaths;
}

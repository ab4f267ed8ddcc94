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

// time before each chunk by family, [chunk * CLASSES + family] in ns: exact, as sums below 2^53 are
export function timesBefore(model) {
  if (!model.timesBefore) {
    const { dur, family, name } = model;
    const chunks = Math.ceil(name.length / CHUNK);
    const times = new Float64Array((chunks + 1) * CLASSES);
    for (let chunk = 0; chunk < chunks; chunk++) {
      const at = chunk * CLASSES;
      const next = at + CLASSES;
      times.copyWithin(next, at, next);
      const last = Math.min((chunk + 1) * CHUNK, name.length);
      for (let i = chunk * CHUNK; i < last; i++) times[next + family[i]] += dur[i];
    }
    model.timesBefore = times;
  }
  return model.timesBefore;
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

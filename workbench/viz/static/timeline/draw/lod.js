// Which spans of a lane are drawn by themselves, and what the pixel columns hold of the others.
import { CHUNK, chunkHits, chunkPaths, timesBefore } from "./chunks.js";
import { CLASSES } from "./decode.js";
import { bisect } from "./scales.js";

export const SINGLE_MIN = 1.5; // px

// first span of the lane that ends at t or later; spans of a lane do not overlap
export function firstEnding(model, lane, t) {
  const { start, dur } = model;
  return bisect(lane.first, lane.first + lane.count, (i) => start[i] + dur[i] >= t);
}

export function newColumns(pixels) {
  return {
    pixels,
    cover: new Float64Array(pixels * CLASSES),
    hit: new Uint8Array(pixels),
    path: new Uint8Array(pixels),
    singles: [],
    gaps: [],
    // what `columnAt` returns: a frame asks for thousands
    found: { family: -1, share: 0, faint: false },
  };
}

// Adds chunks that follow each other to one pixel.
function addChunks({ cover, hit, path }, pixel, [first, behind], scale, { before, hits, paths }) {
  const low = first * CLASSES;
  const high = behind * CLASSES;
  const at = pixel * CLASSES;
  for (let f = 0; f < CLASSES; f++) cover[at + f] += (before[high + f] - before[low + f]) * scale;
  for (let chunk = first; chunk < behind; chunk++) {
    if (hits && hits[chunk]) hit[pixel] = 1;
    if (paths && paths[chunk]) path[pixel] = 1;
  }
}

// Fills `into` for one lane: cover[pixel * CLASSES + family] is the share of the pixel that merged
// spans of the family cover, hit[pixel] whether any of them is searched for, path[pixel] whether
// any is marked in `critical`; singles and gaps are spans to draw, and spans before which a gap of
// at least `gapMin` px stands.
export function mergeLane(model, lane, [from, to], into, matches, gapMin, critical = null) {
  const { start, dur, family, name, gap } = model;
  const { pixels, cover, hit, path, singles, gaps } = into;
  cover.fill(0);
  hit.fill(0);
  path.fill(0);
  singles.length = gaps.length = 0;
  const scale = pixels / (to - from);
  const gapNs = gapMin / scale;
  const last = Math.min(lane.first + lane.count, start.length);
  const tables = {
    before: timesBefore(model),
    hits: chunkHits(model, matches),
    paths: chunkPaths(model, critical),
  };
  let i = firstEnding(model, lane, from);
  let end = i > lane.first ? start[i - 1] + dur[i - 1] : Infinity;
  for (; i < last; i++) {
    const begin = start[i];
    if (gap[i] !== 0 && begin - end >= gapNs) gaps.push(i);
    if (begin > to) break;
    if (i % CHUNK === 0 && i + CHUNK <= last && begin >= from) {
      const pixel = ((begin - from) * scale) | 0;
      let behind = i;
      while (pixel < pixels && behind + CHUNK <= last) {
        const stop = start[behind + CHUNK - 1] + dur[behind + CHUNK - 1];
        if ((stop - from) * scale > pixel + 1) break;
        end = stop;
        behind += CHUNK;
      }
      if (behind > i) {
        addChunks(into, pixel, [i / CHUNK, behind / CHUNK], scale, tables);
        i = behind - 1;
        continue;
      }
    }
    end = begin + dur[i];
    const width = dur[i] * scale;
    if (width >= SINGLE_MIN) {
      singles.push(i);
      continue;
    }
    let x = (begin - from) * scale;
    let stop = x + width;
    const pixel = x | 0;
    const marked = matches !== null && matches[name[i]] === 1;
    const onPath = critical !== null && critical[i] === 1;
    if (x >= 0 && stop <= pixel + 1 && pixel < pixels) {
      cover[pixel * CLASSES + family[i]] += width;
      if (marked) hit[pixel] = 1;
      if (onPath) path[pixel] = 1;
      continue;
    }
    if (x < 0) x = 0;
    if (stop > pixels) stop = pixels;
    // a narrow span may still lie across two or three pixels
    for (let p = Math.floor(x); p < pixels; p++) {
      const right = stop < p + 1 ? stop : p + 1;
      if (right > x) cover[p * CLASSES + family[i]] += right - x;
      if (marked) hit[p] = 1;
      if (onPath) path[p] = 1;
      if (stop <= p + 1) break;
      x = p + 1;
    }
  }
  return into;
}

// The family with most time in the pixel, and the share covered; -1 for none. Where some families are
// kept, the others count only where none of these is, and are then faint. The next call changes it.
export function columnAt(merged, pixel, kept = null) {
  const found = mostOf(merged, pixel, kept);
  if (!kept || found.family >= 0) return found;
  mostOf(merged, pixel, null).faint = true;
  return found;
}

function mostOf({ cover, found }, pixel, kept) {
  let best = -1;
  let most = 0;
  let share = 0;
  for (let f = 0, at = pixel * CLASSES; f < CLASSES; f++, at++) {
    if (kept && !kept[f]) continue;
    share += cover[at];
    if (cover[at] > most) {
      most = cover[at];
      best = f;
    }
  }
  found.family = best;
  found.share = Math.min(1, share);
  found.faint = false;
  return found;
}

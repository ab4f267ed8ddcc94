// What is known of a span, in words: for the hover card and for the text below the timeline.
import { duration } from "../../shared/format.js";
import { RUN, WAIT, laneOf, stepOf } from "./decode.js";

// [label, value, family or -1] per fact
export function factsOf(model, i) {
  const lane = model.lanes[laneOf(model, i)];
  const family = model.family[i];
  const facts = [];
  if (family < WAIT) {
    facts.push(["Family", model.header.families[family][0], family]);
    if (model.nameOp.length && model.ops[model.nameOp[model.name[i]]] !== spanName(model, i)) {
      facts.push(["Op", model.ops[model.nameOp[model.name[i]]], -1]);
    }
    const source = model.sources[model.nameSource[model.name[i]]];
    if (source) facts.push(["Source", source, -1]);
  }
  facts.push(["Duration", duration(model.dur[i]), -1]);
  facts.push(lane.kind === "prefetch" ? stageFact(model, lane, i) : startFact(model, i));
  if (family < WAIT && lane.kind !== "critical" && lane.kind !== "receive") {
    facts.push(["Dispatch", duration(model.delay[i]), -1]);
    if (model.critical) facts.push(["Critical path", model.critical[i] ? "on it" : "not on it", -1]);
  }
  facts.push(["Lane", lane.title, -1]);
  return facts;
}

export function spanName(model, i) {
  const name = model.names[model.name[i]];
  return model.family[i] === RUN ? `${name} ${model.step[i]}` : name;
}

function startFact(model, i) {
  const k = stepOf(model, i);
  if (k < 0) return ["Start", duration(model.start[i]), -1];
  const offset = model.start[i] - model.stepStart[k];
  return ["Start", `${offset < 0 ? "" : "+"}${duration(offset)} in step ${model.step[i]}`, -1];
}

function stageFact(model, lane, i) {
  const flow = model.flowOfRun.get(`${lane.track}:${model.step[i]}`);
  const step = flow === undefined ? -1 : model.flowStep[flow];
  return step >= 0 ? ["For step", String(step), -1] : ["Stage run", String(model.step[i]), -1];
}

// A value as it travels: deflated JSON.
import { inflate } from "./unpack.js";

export async function unpacked(bytes) {
  return JSON.parse(new TextDecoder().decode(await inflate(bytes)));
}

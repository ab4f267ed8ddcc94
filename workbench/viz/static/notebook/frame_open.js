// Unpacks the page of a notebook's frame and puts it in place; its scripts run once they stand
// there. Where that fails, the frame stays without height and the still picture beside it stands.
import { fromBase64, inflate } from "../shared/unpack.js";

export async function openFrame(page = document) {
  const packed = page.getElementById("packed");
  const content = new TextDecoder().decode(await inflate(fromBase64(packed.textContent)));
  packed.replaceWith(page.createRange().createContextualFragment(content));
}

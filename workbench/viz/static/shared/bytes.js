// The bytes that a widget's model or message carries: a view of a buffer, or the buffer.
export function bytesOf(view) {
  return new Uint8Array(view.buffer || view, view.byteOffset || 0, view.byteLength);
}

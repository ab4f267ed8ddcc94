// Keys of a boundary, in words.
export const BOX_KEY_WORDS =
  "Arrow keys move between boxes, Enter tells of one, Space lets it run ahead or stay. On the line " +
  "arrow left and right move it.";
export const BOX_KEY_HINTS = [
  [["↑", "↓"], "boxes"],
  [["Enter"], "why"],
  [["Space"], "ahead or not"],
  [["←", "→"], "on the line: move it"],
  [["/"], "search"],
];

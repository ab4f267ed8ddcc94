// Colours of the page the timeline stands in, read from its custom properties, and the patterns.
const TOKENS = ["bg", "up", "ink", "ink2", "line", "line2", "acc"];
const TILE = 8;

export function readTheme(root, families) {
  const probe = document.createElement("span");
  probe.style.cssText = "position:absolute;forced-color-adjust:none";
  root.append(probe);
  const resolve = (token) => {
    probe.style.color = `var(--wb-${token})`;
    return getComputedStyle(probe).color;
  };
  const theme = { font: getComputedStyle(root).fontFamily, patterns: new Map(), widths: new Map() };
  for (const token of TOKENS) theme[token] = resolve(token);
  theme.fill = families.map((_, f) => resolve(`f${f}`));
  theme.text = families.map((_, f) => resolve(`t${f}`));
  theme.kinds = families.map(([, , pattern]) => pattern);
  theme.forced = matchMedia("(forced-colors: active)").matches;
  // where pattern and code carry the family, what is too small for them is ink
  theme.mark = theme.forced ? theme.fill.map(() => theme.ink) : theme.fill;
  // an element outside of the page has no style yet
  theme.live = root.isConnected;
  probe.remove();
  return theme;
}

const DIAGONALS = { slash: [1], backslash: [-1], crossed: [1, -1] };

function drawPattern(g, kind) {
  g.beginPath();
  if (kind === "vertical") g.rect(4, 0, 1, TILE);
  if (kind === "horizontal") g.rect(0, 4, TILE, 1);
  if (kind === "dots") {
    g.rect(1, 1, 2, 2);
    g.rect(5, 5, 2, 2);
  }
  g.fill();
  if (kind === "squares") g.strokeRect(2.5, 2.5, 3, 3);
  g.beginPath();
  for (const slope of DIAGONALS[kind] || []) {
    for (const x of [-TILE, 0, TILE]) {
      g.moveTo(x, slope > 0 ? TILE : 0);
      g.lineTo(x + TILE, slope > 0 ? 0 : TILE);
    }
  }
  g.stroke();
}

function tile(ctx, size, paint) {
  const ratio = devicePixelRatio || 1;
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.round(size * ratio);
  const g = canvas.getContext("2d");
  g.scale(canvas.width / size, canvas.width / size);
  paint(g);
  const pattern = ctx.createPattern(canvas, "repeat");
  pattern.setTransform(new DOMMatrix().scale(size / canvas.width));
  return pattern;
}

function cached(theme, key, make) {
  if (!theme.patterns.has(key)) theme.patterns.set(key, make());
  return theme.patterns.get(key);
}

export function familyFill(ctx, theme, family) {
  return cached(theme, family, () =>
    tile(ctx, TILE, (g) => {
      g.fillStyle = theme.fill[family];
      g.fillRect(0, 0, TILE, TILE);
      g.fillStyle = g.strokeStyle = theme.text[family];
      g.globalAlpha = theme.forced ? 1 : 0.3;
      drawPattern(g, theme.kinds[family]);
    }),
  );
}

export function hatchFill(ctx, theme) {
  return cached(theme, "hatch", () =>
    tile(ctx, 6, (g) => {
      g.strokeStyle = theme.ink2;
      g.beginPath();
      for (const x of [-6, 0, 6]) {
        g.moveTo(x, 6);
        g.lineTo(x + 6, 0);
      }
      g.stroke();
    }),
  );
}

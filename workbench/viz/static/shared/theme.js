// Colours of the page the timeline stands in, read from its custom properties, and the patterns.
const TOKENS = ["bg", "up", "ink", "ink2", "line", "line2", "acc"];
const TILE = 8;

export function prefersDark() {
  const { jpThemeLight, vscodeThemeKind, theme } = document.body.dataset;
  if (jpThemeLight) return jpThemeLight === "false";
  if (vscodeThemeKind) return /dark|high-contrast$/.test(vscodeThemeKind);
  // marimo's, and those of pages of documents
  if (theme === "dark" || theme === "light") return theme === "dark";
  const colab = document.documentElement.getAttribute("theme");
  if (colab) return colab === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

// calls back whenever a page, this one by default, changes its theme; stops with the signal
export function watchTheme(signal, callback, page = document) {
  const observer = new MutationObserver(callback);
  const attributeFilter = ["data-jp-theme-light", "data-vscode-theme-kind", "data-theme", "theme", "class"];
  observer.observe(page.body, { attributes: true, attributeFilter });
  observer.observe(page.documentElement, { attributes: true, attributeFilter });
  signal.addEventListener("abort", () => observer.disconnect());
  for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
    matchMedia(query).addEventListener("change", callback, { signal });
  }
}

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

// a 12 px sample for legend, card and table
export function paintSwatch(canvas, theme, family) {
  const ratio = devicePixelRatio || 1;
  canvas.width = canvas.height = 12 * ratio;
  const g = canvas.getContext("2d");
  g.scale(ratio, ratio);
  g.fillStyle = family >= WAIT ? hatchFill(g, theme) : familyFill(g, theme, family);
  g.fillRect(0, 0, 12, 12);
  if (family >= WAIT || theme.forced) {
    g.strokeStyle = theme.ink2;
    g.strokeRect(0.5, 0.5, 11, 11);
  }
}

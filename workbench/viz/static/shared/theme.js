// Whether the page that a view stands in is dark, and when that changes.
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

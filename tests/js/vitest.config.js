import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const modules = fileURLToPath(new URL("../../workbench/viz/static", import.meta.url));

export default defineConfig({
  resolve: { alias: { static: modules } },
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["**/*.test.js"],
    globalSetup: ["./pack.js"],
    environment: "node",
  },
});

import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const joined = fileURLToPath(new URL("../../build/vitest", import.meta.url));

export default defineConfig({
  resolve: { alias: { joined } },
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["**/*.test.js"],
    globalSetup: ["./join.js"],
    environment: "node",
  },
});

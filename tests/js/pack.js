// Before the tests: Python packs the views that they draw.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export default function pack() {
  const home = fileURLToPath(new URL("../..", import.meta.url));
  const own = `${home}.venv/bin/python`;
  const python = existsSync(own) ? own : "python3";
  execFileSync(python, ["-m", "tests.js.pack", `${home}build/vitest`], { cwd: home, stdio: "inherit" });
}

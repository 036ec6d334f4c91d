#!/usr/bin/env node
// backend_protocol.mjs: the seven tests of LocalSandbox (SandboxBackendProtocol), by name, on the
// backend of CAISSON_BACKEND; then what else its interface promises. TAP.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { LocalSandbox } from "./local_sandbox.mjs";

const top = fs.mkdtempSync(path.join(os.tmpdir(), "csn-protocol."));
for (const name of ["STATE_HOME", "RUNTIME_DIR", "CONFIG_HOME"]) {
  process.env[`XDG_${name}`] = path.join(top, name);
  fs.mkdirSync(path.join(top, name), { mode: 0o700 });
}
const testDir = path.join(top, ".test-sandbox");
fs.mkdirSync(testDir);
const sandbox = new LocalSandbox({ cwd: testDir });
let count = 0;
let failed = 0;

async function test(name, body) {
  count++;
  let why = null;
  try {
    await body((good, what, got) => {
      if (!good) why ??= `${what}: ${JSON.stringify(got)}`;
    });
  } catch (e) {
    why = String(e);
  }
  failed += why !== null;
  console.log(`${why === null ? "ok" : "not ok"} ${count} - ${name}${why === null ? "" : `\n# ${why}`}`);
}

await test("execute returns output and exit code", async (is) => {
  const r = await sandbox.execute("echo hello");
  is(r.output.trim() === "hello" && r.exitCode === 0 && r.truncated === false, "result", r);
});
await test("execute captures stderr", async (is) => {
  const r = await sandbox.execute("echo error >&2");
  is(r.output.trim() === "error" && r.exitCode === 0, "result", r);
});
await test("execute returns non-zero exit code on failure", async (is) => {
  const r = await sandbox.execute("exit 42");
  is(r.exitCode === 42, "exit code", r);
});
await test("id is unique", async (is) => {
  const other = new LocalSandbox({ cwd: testDir });
  is(sandbox.id !== other.id, "ids", [sandbox.id, other.id]);
  is(/^local-\d+-[a-z0-9]+$/.test(sandbox.id), "pattern", sandbox.id);
  other.destroy();
});
await test("write and read file", async (is) => {
  const w = await sandbox.write("/test.txt", "hello world");
  is(w.error === undefined && w.path === "/test.txt", "write", w);
  const content = await sandbox.read("/test.txt");
  is(content.includes("hello world"), "read", content);
});
await test("edit file", async (is) => {
  await sandbox.write("/edit-test.txt", "foo bar baz");
  const e = await sandbox.edit("/edit-test.txt", "bar", "qux");
  is(e.error === undefined && e.occurrences === 1, "edit", e);
  const content = await sandbox.read("/edit-test.txt");
  is(content.includes("foo qux baz"), "read", content);
});
await test("lsInfo lists files", async (is) => {
  const infos = await sandbox.lsInfo(testDir);
  is(infos.length > 0 && infos.some((f) => f.path === "test.txt"), "list", infos);
});

await test("the messages are those of the document", async (is) => {
  const again = await sandbox.write("/test.txt", "x");
  is(again.error === "Cannot write to /test.txt because it already exists.", "write", again);
  const missing = await sandbox.edit("/test.txt", "nope", "x");
  is(missing.error === "Error: String not found in file: 'nope'", "edit", missing);
  await sandbox.write("/twice", "a a");
  const twice = await sandbox.edit("/twice", "a", "b");
  is(twice.error === "Error: String 'a' appears multiple times. Use replaceAll=true to replace all occurrences.",
     "ambiguous", twice);
  is((await sandbox.edit("/twice", "a", "b", true)).occurrences === 2, "all", twice);
  await sandbox.write("/empty", "");
  is((await sandbox.read("/empty")) === "System reminder: File exists but has empty contents", "empty", null);
  is((await sandbox.read("/test.txt")) === "     1\thello world", "numbers", await sandbox.read("/test.txt"));
  is((await sandbox.read("/test.txt", 0, 0)) === "", "no lines", null);
});
await test("grepRaw, globInfo, readRaw and an empty lsInfo", async (is) => {
  await sandbox.write("/src/a.js", "one\ntwo\n");
  const found = await sandbox.grepRaw("two", "/", "**/*.js");
  is(found.length === 1 && found[0].line === 2 && found[0].path === "src/a.js", "grep", found);
  const files = await sandbox.globInfo("**/*.js");
  is(files.length === 1 && files[0].path === "src/a.js" && files[0].size === 8, "glob", files);
  is((await sandbox.readRaw("/src/a.js")).content.join() === "one,two,", "raw", null);
  is((await sandbox.lsInfo("/missing")).length === 0, "missing", null);
});

sandbox.destroy();
fs.rmSync(top, { recursive: true, force: true });
console.log(`1..${count}`);
process.exit(failed ? 1 : 0);

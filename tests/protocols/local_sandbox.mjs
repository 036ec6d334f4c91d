// local_sandbox.mjs: the class LocalSandbox of SandboxBackendProtocol, on caisson.
//
// A thin view of the command line: each method is one `caisson ... --json`. Paths that begin with
// `/` are those of the workspace, as its tests use them; a path below the workspace
// names itself. The backend is that of CAISSON_BACKEND.
import { execFileSync, spawn } from "node:child_process";

const CAISSON = process.env.CAISSON ?? "caisson";

function run(args, input = "") {
  return new Promise((resolve, reject) => {
    const child = spawn(CAISSON, [args[0], "--json", ...args.slice(1)], { stdio: ["pipe", "pipe", "ignore"] });
    const chunks = [];
    child.stdout.on("data", (data) => chunks.push(data));
    child.stdin.on("error", () => {});
    child.stdin.end(input);
    child.on("error", reject);
    child.on("close", () => resolve(JSON.parse(Buffer.concat(chunks).toString())));
  });
}

function info(entry) {
  return { path: entry.path, is_dir: entry.is_dir, size: entry.size, modified_at: entry.modified_at };
}

export class LocalSandbox {
  #box;
  #cwd;
  #timeout;
  #env;

  constructor(options = {}) {
    this.#cwd = options.cwd ?? process.cwd();
    this.#timeout = options.timeout ?? 30000;
    this.#env = Object.entries(options.env ?? {}).flatMap(([k, v]) => ["--env", `${k}=${v}`]);
    this.#box = execFileSync(CAISSON, ["create", "--workspace", this.#cwd], { encoding: "utf8" }).trim();
  }

  // The document's ids name its one local backend.
  get id() {
    return this.#box.replace(/^[a-z0-9]+-/, "local-");
  }

  #path(path) {
    const own = path === this.#cwd || path.startsWith(this.#cwd + "/");
    return own || !path.startsWith("/") ? path : "." + path;
  }

  async execute(command) {
    const r = await run(["exec", this.#box, "--timeout", `${this.#timeout}ms`, ...this.#env, "-c", command]);
    if (r.error) return { output: `Error: ${r.error.message}`, exitCode: 1, truncated: false };
    return { output: r.output, exitCode: r.exit_code, truncated: r.truncated };
  }

  async lsInfo(path) {
    const r = await run(["ls", this.#box, this.#path(path), "-l"]);
    return Array.isArray(r) ? r.map(info) : [];
  }

  async read(path, offset = 0, limit = 2000) {
    const window = ["--offset", `${offset}`, "--limit", `${limit}`, "--numbers"];
    const r = await run(["read", this.#box, this.#path(path), ...window]);
    return r.error ? `Error: ${r.error.message}` : r.content.trimEnd();
  }

  async readRaw(path) {
    const r = await run(["read", this.#box, this.#path(path)]);
    if (r.error) throw new Error(r.error.message);
    const now = new Date().toISOString();
    return { content: r.content.split("\n"), created_at: now, modified_at: now };
  }

  async write(path, content) {
    const r = await run(["write", this.#box, this.#path(path), "--create-only"], content);
    if (r.error?.code === "exists") return { error: `Cannot write to ${path} because it already exists.` };
    return r.error ? { error: r.error.message } : { path };
  }

  async edit(path, oldString, newString, replaceAll = false) {
    const all = replaceAll ? ["--all"] : [];
    const r = await run(["edit", this.#box, this.#path(path), ...all, "--", oldString, newString]);
    return r.error ? { error: `Error: ${r.error.message}` } : { path, occurrences: r.occurrences };
  }

  async grepRaw(pattern, path = "/", glob = null) {
    const r = await run(["grep", this.#box, ...(glob ? ["--glob", glob] : []), "--", pattern, this.#path(path)]);
    if (r.error) return r.error.message;
    return r.map(({ path: at, line, text }) => ({ path: at, line, text }));
  }

  async globInfo(pattern, path = "/") {
    const r = await run(["glob", this.#box, "-l", "--", pattern, this.#path(path)]);
    return Array.isArray(r) ? r.map(info) : [];
  }

  destroy() {
    execFileSync(CAISSON, ["destroy", this.#box]);
  }
}

#!/bin/bash
# Interpreters: Python, Node, Perl, Tcl, shells, and their package managers without a network.
# shellcheck source=tests/works/lib.sh disable=SC2016
. "${0%/*}/lib.sh"

works "python3: the standard library loads" python3 '
python3 -c "import ssl, sqlite3, asyncio, multiprocessing, ctypes, hashlib, uuid, tempfile, socket
import curses, readline, zoneinfo, decimal, lzma, bz2, zlib
ssl.create_default_context(); ctypes.CDLL(None).getpid(); uuid.uuid1()"'
works "python3: multiprocessing, by fork and by spawn" python3 '
cat >m.py <<"P"
import multiprocessing as mp
def f(x): return x * x
if __name__ == "__main__":
    for how in ("fork", "spawn", "forkserver"):
        c = mp.get_context(how)
        with c.Pool(3) as p: assert p.map(f, range(9)) == [x * x for x in range(9)]
        q = c.Queue(); q.put(1); assert q.get() == 1
    from multiprocessing import shared_memory
    s = shared_memory.SharedMemory(create=True, size=4096); s.buf[0] = 1; s.close(); s.unlink()
P
python3 m.py'
works "python3: asyncio, its subprocesses and servers" python3 '
cat >a.py <<"P"
import asyncio
async def serve(r, w):
    w.write(await r.readline()); await w.drain(); w.close()
async def main():
    p = await asyncio.create_subprocess_exec("echo", "hi", stdout=asyncio.subprocess.PIPE)
    assert (await p.communicate())[0] == b"hi\n"
    for host in ("127.0.0.1", "::1", "localhost"):
        s = await asyncio.start_server(serve, host, 0)
        r, w = await asyncio.open_connection(host, s.sockets[0].getsockname()[1])
        w.write(b"x\n"); assert await r.readline() == b"x\n"; w.close(); s.close()
asyncio.run(main())
P
python3 a.py'
works "python3: sqlite3 with a write-ahead log, in workspace, /tmp and home" python3 '
cat >s.py <<"P"
import os, sqlite3, sys
for d in (".", "/tmp", os.path.expanduser("~"), "/dev/shm"):
    c = sqlite3.connect(d + "/x.db"); assert c.execute("pragma journal_mode=wal").fetchone() == ("wal",)
    c.execute("create table t(a)"); c.execute("insert into t values(1)"); c.commit()
    assert c.execute("select a from t").fetchall() == [(1,)]; c.close()
P
python3 s.py'
works "python3: tempfile, pathlib, shutil, getpass, platform" python3 '
python3 -c "
import tempfile, pathlib, shutil, getpass, platform, pwd, os
with tempfile.TemporaryDirectory() as d: pathlib.Path(d, \"x\").write_text(\"a\")
tempfile.TemporaryFile().write(b\"a\"); tempfile.NamedTemporaryFile().write(b\"a\")
assert pathlib.Path.home() == pathlib.Path(pwd.getpwuid(os.getuid()).pw_dir)
assert getpass.getuser() == pwd.getpwuid(os.getuid()).pw_name
platform.platform(); platform.freedesktop_os_release(); shutil.disk_usage(\".\")"'
if [ -z "$(missing python3)" ] && ! python3 -c "import ensurepip" 2>/dev/null; then
    skip "python3: a venv, and pip install of a local package" "python3-venv is not installed"
else
    works "python3: a venv, and pip install of a local package" python3 '
python3 -m venv v && . v/bin/activate
mkdir -p pkg/demo && echo "def f(): return 5" >pkg/demo/__init__.py
printf "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"
[project]\nname = \"demo\"\nversion = \"1\"\n[tool.setuptools]\npackages = [\"demo\"]\n" >pkg/pyproject.toml
if ! python -c "import wheel" 2>/dev/null; then # a setup.py needs no wheel
    printf "from setuptools import setup\nsetup(name=\"demo\", version=\"1\", packages=[\"demo\"])\n" >pkg/setup.py
    rm pkg/pyproject.toml
fi
pip install -q --disable-pip-version-check --no-index --no-build-isolation ./pkg
cd / && [ "$(python -c "import demo; print(demo.f())")" = 5 ]'
fi
works "python3: http.server and urllib over loopback" python3 '
cat >h.py <<"P"
import http.server, threading, urllib.request
s = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=s.serve_forever, daemon=True).start()
open("f", "w").write("data")
assert urllib.request.urlopen("http://localhost:%d/f" % s.server_port).read() == b"data"
P
python3 h.py'
works "python3: unittest" python3 '
printf "import unittest\nclass T(unittest.TestCase):\n  def test(self): self.assertEqual(1, 1)\n" >test_x.py
python3 -m unittest -q'
works "python3: pty.spawn, and a terminal of its own" python3 '
python3 -c "
import os, pty, subprocess
assert pty.spawn([\"sh\", \"-c\", \"test -t 0 && test -t 1 && tty >t\"]) == 0
m, s = os.openpty(); assert os.ttyname(s).startswith(\"/dev/pts/\")
subprocess.run([\"tty\"], stdin=s, check=True, start_new_session=True)" && grep -q "^/dev/pts/" t'

works "node: files, workers, children, crypto" node '
cat >n.js <<"J"
const fs = require("fs"), cp = require("child_process"), os = require("os"), assert = require("assert");
const { Worker, isMainThread, parentPort } = require("worker_threads");
if (!isMainThread) parentPort.postMessage(42);
else {
    fs.writeFileSync("f", "x"); fs.copyFileSync("f", "g"); fs.renameSync("g", "h");
    fs.mkdirSync("a/b", { recursive: true }); fs.rmSync("a", { recursive: true });
    assert.equal(fs.readFileSync("h", "utf8"), "x");
    assert.equal(cp.execSync("echo hi").toString(), "hi\n");
    assert.ok(os.cpus().length > 0); os.userInfo(); os.networkInterfaces();
    require("crypto").randomBytes(16);
    const w = new Worker(__filename);
    w.on("message", (m) => { assert.equal(m, 42); console.log("done"); });
}
J
[ "$(node n.js)" = done ]'
works "node: http over loopback and a unix socket, fs.watch" node '
cat >h.js <<"J"
const http = require("http"), fs = require("fs");
const get = (o) => new Promise((ok) => http.get(o, (r) => r.on("data", (d) => ok(d.toString()))));
const serve = (where) => new Promise((ok) => {
    const s = http.createServer((q, r) => r.end("hi"));
    s.listen(where, () => ok(s)); });
(async () => {
    const a = await serve(0), b = await serve("./sock");
    const one = await get("http://localhost:" + a.address().port), two = await get({ socketPath: "./sock" });
    const seen = new Promise((ok) => { const w = fs.watch(".", () => { w.close(); ok(1); }); });
    fs.writeFileSync("new", ""); await seen;
    a.close(); b.close(); console.log(one + two);
})();
J
[ "$(node h.js | head -n 1)" = hihi ]'
works "npm: install of a local package, test, pack, run" npm '
mkdir lib app && cd lib
echo "{\"name\":\"lib\",\"version\":\"1.0.0\",\"main\":\"i.js\",\"bin\":{\"libtool\":\"i.js\"}}" >package.json
printf "#!/usr/bin/env node\nmodule.exports = 5;\n" >i.js
npm pack --silent && cd ../app
echo "{\"name\":\"app\",\"version\":\"1.0.0\",\"scripts\":{\"test\":\"node t.js\",\"b\":\"libtool\"}}" >package.json
echo "process.exit(require(\"lib\") === 5 ? 0 : 1)" >t.js
npm install --offline --no-audit --no-fund ../lib/lib-1.0.0.tgz
npm test && npm run b && npm ls
npm install --offline --no-audit --no-fund ../lib && npm test'

works "perl: modules, sockets, fork" perl '
perl -MIO::Socket::INET -MFile::Temp -MPOSIX -e "
my \$s = IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1)) or die; my \$p = fork;
if (!\$p) { IO::Socket::INET->new(PeerAddr => q(127.0.0.1), PeerPort => \$s->sockport)->print(qq(x\n)); exit 3 }
my \$c = \$s->accept; <\$c> eq qq(x\n) or die; waitpid(\$p, 0); WEXITSTATUS(\$?) == 3 or die"'
works "tclsh" tclsh '
echo "set p [open \"|echo hi\"]; puts [gets \$p]; close \$p" >t.tcl && [ "$(tclsh t.tcl)" = hi ]'
works "sh and bash: here documents, process substitution, coprocesses" "bash sh" '
diff <(printf "a\nb\n") <(sh -c "cat <<E
a
b
E")
coproc cat; echo x >&"${COPROC[1]}"; read -r l <&"${COPROC[0]}"; [ "$l" = x ]
echo y | tee >(cat >out) >/dev/null; for i in $(seq 600); do [ -s out ] && break; sleep 0.1; done; [ -s out ]
exec 3<>/dev/null; (exec 3>&-); cat /dev/stdin </dev/null'
works "sh: the names /dev/stdout, /dev/stderr and /dev/fd" sh '
sh -c "echo ok >/dev/stdout; echo ok >/dev/stderr; echo ok >/dev/fd/2; echo ok | tee /dev/stderr"'
works "bash: /dev/tcp to a server on loopback" "bash python3" '
python3 -m http.server --bind 127.0.0.1 8123 >/dev/null 2>&1 &
for i in $(seq 600); do (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null && break; sleep 0.1; done
exec 3<>/dev/tcp/localhost/8123 && printf "GET / HTTP/1.0\r\n\r\n" >&3 && grep -q 200 <&3; kill %1'

"""client.py: a small MCP client for tests, and TAP. Not an SDK: it can send anything.

A test gets CAISSON (the program), private state, runtime and config directories, and a workspace.
"""
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

CAISSON = os.environ["CAISSON"]
WAIT = 60  # seconds nothing of this takes; only there so that a hang ends


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def ok(self, good, name, why=""):
        self.n += 1
        print(("ok" if good else "not ok"), self.n, "-", name)
        if not good:
            self.failed += 1
            for line in str(why)[:2000].splitlines():
                print("#", line)
        sys.stdout.flush()

    def skip(self, name, why):
        self.n += 1
        print("ok", self.n, "-", name, "# SKIP", why)

    def end(self):
        print(f"1..{self.n}")
        sys.exit(1 if self.failed else 0)


class Place:
    """Directories of one test; removed at the end."""

    def __init__(self):
        self.top = tempfile.mkdtemp(prefix="csn-mcp.", dir="/tmp")
        self.ws = os.path.join(self.top, "ws")
        self.env = dict(os.environ, LC_ALL="C.UTF-8")
        for var, name in (("XDG_STATE_HOME", "state"), ("XDG_RUNTIME_DIR", "run"),
                          ("XDG_CONFIG_HOME", "config"), ("HOME", "home")):
            self.env[var] = os.path.join(self.top, name)
            os.mkdir(self.env[var], 0o700)
        os.mkdir(self.ws)

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)


class Stdio:
    """The server as a child, spoken to in lines."""

    def __init__(self, place, *options, start=True):
        self.p = subprocess.Popen([CAISSON, "mcp", "--workspace", place.ws, *options],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=place.env)
        self.text = b""
        self.got = []
        self.next = 100
        if start:
            self.start()

    def start(self, version="2025-11-25"):
        r = self.ask("initialize", {"protocolVersion": version, "capabilities": {},
                                    "clientInfo": {"name": "test", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return r

    def raw(self, data):
        self.p.stdin.write(data)
        self.p.stdin.flush()

    def send(self, msg):
        self.raw(json.dumps(msg).encode() + b"\n")

    def request(self, method, params=None):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method,
                   **({} if params is None else {"params": params})})
        return self.next

    def read(self, wait=WAIT):
        """The next message, or None: nothing came, or the end."""
        until = time.monotonic() + wait
        while b"\n" not in self.text:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.p.stdout], [], [], left)[0]:
                return None
            more = os.read(self.p.stdout.fileno(), 1 << 16)
            if not more:
                return None
            self.text += more
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def answer(self, want, wait=WAIT):
        """The answer to an id; what else comes is kept in got."""
        for i, m in enumerate(self.got):
            if m.get("id") == want and "method" not in m:
                return self.got.pop(i)
        while True:
            m = self.read(wait)
            if m is None or (m.get("id") == want and "method" not in m):
                return m
            self.got.append(m)

    def ask(self, method, params=None):
        return self.answer(self.request(method, params))

    def start_call(self, tool, args, token=None):
        params = {"name": tool, "arguments": args}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return self.request("tools/call", params)

    def call(self, tool, **args):
        return self.answer(self.start_call(tool, args))["result"]

    def end(self, wait=WAIT):
        """Closes the input: (exit status, seconds, the rest of stdout, stderr)."""
        begin = time.monotonic()
        self.p.stdin.close()
        self.p.wait(wait)
        took = time.monotonic() - begin
        out = self.text + self.p.stdout.read()
        err = self.p.stderr.read()
        self.p.stdout.close()
        self.p.stderr.close()
        return self.p.returncode, took, out, err.decode()

    def kill(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()


def text_of(result):
    return "".join(c.get("text", "") for c in result["content"])


def data_of(result):
    return result["structuredContent"]


def alive(mark):
    """Processes whose command line holds the mark."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
            with open(f"/proc/{pid}/stat", "rb") as f:
                state = f.read().rsplit(b")", 1)[1].split()[0]
        except OSError:
            continue
        if mark.encode() in line and state not in (b"Z", b"X"):
            found.append(int(pid))
    return found


def eventually(test, seconds=20):
    until = time.monotonic() + seconds
    while not test():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True

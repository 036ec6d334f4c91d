"""client.py: a small MCP client for tests, and TAP. Not an SDK: it can send anything.

A test gets CAISSON (the program), private state, runtime and config directories, and a workspace.
"""
import json
import os
import select
import shutil
import signal
import socket
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
    assert "structuredContent" in result, result
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


def eventually(test, seconds=WAIT):
    until = time.monotonic() + seconds
    while not test():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


class Http:
    """The server over HTTP, spoken to in bytes."""

    def __init__(self, place, *options, tokens=1):
        self.tokens = [f"token-{i}-{os.urandom(16).hex()}" for i in range(tokens)]
        self.file = os.path.join(place.top, "tokens")
        if os.path.exists(self.file):
            os.unlink(self.file)
        with open(os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as f:
            f.write("\n".join(self.tokens) + "\n")
        self.p = subprocess.Popen([CAISSON, "mcp", "--workspace", place.ws, "--http",
                                   "127.0.0.1:0", "--token-file", self.file, *options],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, env=place.env)
        line = self.p.stderr.readline().decode()
        self.port = int(line.split("http://127.0.0.1:")[1].split("/")[0])

    def connect(self, wait=WAIT):
        return socket.create_connection(("127.0.0.1", self.port), wait)

    def raw(self, data, wait=WAIT, half_close=False):
        """Sends bytes on a connection of its own: all that comes back until its end, or what one
        answer with a length is."""
        with self.connect(wait) as s:
            try:
                s.sendall(data)
                if half_close:
                    s.shutdown(socket.SHUT_WR)
                return read_answer(s)
            except OSError:
                return b""

    def head(self, token=0, method="POST", path="/mcp", host=None, drop=(), **more):
        h = {"Host": host or f"127.0.0.1:{self.port}", "Content-Type": "application/json",
             "Accept": "application/json, text/event-stream"}
        if token is not None:
            h["Authorization"] = f"Bearer {self.tokens[token]}"
        h.update({k.replace("_", "-"): v for k, v in more.items()})
        lines = [f"{method} {path} HTTP/1.1"]
        lines += [f"{k}: {v}" for k, v in h.items() if k not in drop]
        return "\r\n".join(lines) + "\r\n"

    def post(self, msg, token=0, wait=WAIT, **more):
        """(status, headers, body) of one message."""
        body = msg if isinstance(msg, bytes) else json.dumps(msg).encode()
        got = self.raw((self.head(token, **more) + f"Content-Length: {len(body)}\r\n\r\n").encode()
                       + body, wait)
        return parse_answer(got)

    def open(self, token=0):
        status, headers, body = self.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}, token)
        assert status == 200, (status, body)
        return headers["mcp-session-id"]

    def call(self, session, tool, token=0, **args):
        status, _, body = self.post({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": tool, "arguments": args}}, token, Mcp_Session_Id=session)
        assert status == 200, (status, body)
        return json.loads(body)["result"]

    def end(self):
        self.p.terminate()
        code = self.p.wait(WAIT)
        return code, self.p.stdout.read(), self.p.stderr.read()


def read_answer(s):
    """One answer: by its length, or to the end of the connection."""
    got = b""
    while True:
        head, sep, rest = got.partition(b"\r\n\r\n")
        if sep and head.startswith(b"HTTP/1.1 100"):
            got = rest
            continue
        if sep:
            lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n")
                       if line.startswith(b"content-length:")]
            if lengths and len(rest) >= int(lengths[0]):
                return got
            if b"transfer-encoding: chunked" in head.lower() and rest.endswith(b"0\r\n\r\n"):
                return got
        more = s.recv(1 << 16)
        if not more:
            return got
        got += more


def parse_answer(got):
    head, _, body = got.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    if not lines[0].startswith("HTTP/1."):
        return 0, {}, got
    headers = {k.lower(): v.strip() for k, v in (x.split(":", 1) for x in lines[1:])}
    if headers.get("transfer-encoding") == "chunked":
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            whole, body = whole + body[:int(size, 16)], body[int(size, 16) + 2:]
        body = whole
    return int(lines[0].split()[1]), headers, body

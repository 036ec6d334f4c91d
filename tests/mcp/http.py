#!/usr/bin/env python3
"""http.py: what the server does over HTTP, byte by byte: tokens, browsers, framing, sessions. TAP.

Every malformed request is followed by a good one: whatever it was, the next is served.
"""
import json
import os
import socket
import subprocess
import threading
import time

from client import CAISSON, WAIT, Http, Place, Tap, alive, data_of, eventually, parse_answer, read_answer

tap = Tap()
place = Place()
PING = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}


def serves(s, session, name):
    status, _, body = s.post(PING, Mcp_Session_Id=session)
    tap.ok(status == 200 and json.loads(body)["result"] == {}, f"{name}: the next request is served",
           (status, body))


def auth():
    s = Http(place, tokens=2)
    good = s.tokens[0]
    session = s.open()
    for name, value in (("empty", ""), ("no scheme", good), ("wrong scheme", f"Basic {good}"),
                        ("wrong", "Bearer " + "x" * len(good)), ("a prefix", f"Bearer {good[:-1]}"),
                        ("one byte more", f"Bearer {good}x"), ("two tokens", f"Bearer {good} {good}"),
                        ("no token", "Bearer "), ("scheme only", "Bearer")):
        status, headers, body = s.post(PING, None, Authorization=value, Mcp_Session_Id=session)
        tap.ok(status == 401 and headers.get("www-authenticate") == "Bearer" and
               good.encode() not in body, f"{name}: 401", (status, headers, body))
    status, _, _ = s.post(PING, None, Mcp_Session_Id=session)
    tap.ok(status == 401, "no header: 401", status)
    status, _, _ = s.post(PING, None, path=f"/mcp?token={good}", Mcp_Session_Id=session)
    tap.ok(status == 401, "a token in the address: 401", status)
    status, _, _ = s.post(PING, None, Authorization=f"bearer {good}", Mcp_Session_Id=session)
    tap.ok(status == 200, "the scheme may be in lower case", status)
    body = json.dumps(PING).encode()
    got = s.raw((s.head(0) + f"Authorization: Bearer {good}\r\nMcp-Session-Id: {session}\r\n"
                 f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
    tap.ok(b" 401 " in got.split(b"\r\n")[0], "two headers: 401", got[:100])
    got = s.raw((s.head(None) + f"Authorization: Bearer {'x' * (1 << 20)}\r\n\r\n").encode())
    tap.ok(got[:12] in (b"HTTP/1.1 431", b"HTTP/1.1 401", b"") or b" 4" in got[:12],
           "a token of 1 MB is refused", got[:100])
    got = s.raw((s.head(None) + "Content-Length: 10000000000\r\n\r\n").encode())
    tap.ok(b" 4" in got[:13], "refused before the body is read", got[:60])
    status, _, _ = s.post(PING, 1, Mcp_Session_Id=session)
    tap.ok(status == 404, "a session works with its own token only", status)
    serves(s, session, "tokens")
    with open(f"/proc/{s.p.pid}/cmdline", "rb") as f:
        line = f.read()
    r = s.call(session, "bash", command="env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'")
    tap.ok(good.encode() not in line and good not in data_of(r)["stdout"],
           "the token is on no command line and in no environment")
    code, out, err = s.end()
    tap.ok(code == 0 and out == b"" and good.encode() not in err, "and not on stderr", (code, out, err))

    file = os.path.join(place.top, "t")

    def start(*more):
        return subprocess.run([CAISSON, "mcp", "--http", "127.0.0.1:0", *more], env=place.env,
                              capture_output=True, text=True, timeout=60, check=False)
    tap.ok(start().returncode == 2, "no token file, no server")
    for mode, text, what in ((0o644, "x" * 40, "readable by others"), (0o600, "", "empty"),
                             (0o600, "short", "too short"), (0o600, "a b" * 10, "with a space")):
        with open(file, "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(file, mode)
        p = start("--token-file", file)
        tap.ok(p.returncode == 1 and "token file" in p.stderr and (not text or text not in p.stderr),
               f"a token file {what} is refused", p.stderr)
    os.unlink(file)
    os.symlink(s.file, file)
    p = start("--token-file", file)
    tap.ok(p.returncode == 1, "so is a symlink", p.stderr)
    os.unlink(file)
    p = subprocess.Popen([CAISSON, "mcp", "--http", "127.0.0.1:0", "--token-file", file],
                         env=place.env, stderr=subprocess.PIPE, text=True, cwd=place.ws)
    p.stderr.readline()
    with open(file, encoding="ascii") as f:
        made = f.read().strip()
    tap.ok(os.stat(file).st_mode & 0o777 == 0o600 and len(made) >= 32, "a missing one is made", made)
    p.terminate()
    p.wait()
    p.stderr.close()


def browsers():
    s = Http(place, "--allow-host", "box.example")
    session = s.open()
    for host, origin, want in ((None, None, 200), ("localhost:1", None, 200), ("[::1]:80", None, 200),
                               ("box.example", None, 200), ("LOCALHOST", None, 200),
                               ("evil.example", None, 403), ("127.0.0.1.evil.example", None, 403),
                               ("localhost.evil.example", None, 403), ("localhost:x", None, 403),
                               ("127.0.0.1@evil.example", None, 403), ("", None, 403),
                               (None, "http://localhost:5173", 200), (None, "http://127.0.0.1", 200),
                               (None, "https://box.example", 200), (None, "null", 403),
                               (None, "http://evil.example", 403), (None, "file://", 403),
                               (None, "http://localhost.evil.example", 403),
                               (None, "http://localhost@evil.example", 403), (None, "", 403)):
        more = {} if origin is None else {"Origin": origin}
        status, headers, _ = s.post(PING, host=host if host is not None else None, Mcp_Session_Id=session,
                                    **({"Host": ""} if host == "" else {}), **more)
        tap.ok(status == want and not [h for h in headers if h.startswith("access-control")],
               f"Host {host} Origin {origin}: {want}", (status, headers))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""):
        status, _, _ = s.post(PING, Mcp_Session_Id=session, Content_Type=kind)
        tap.ok(status == 415, f"{kind or 'no kind'}: 415", status)
    status, _, _ = s.post(PING, Mcp_Session_Id=session, Content_Type="Application/JSON; charset=utf-8")
    tap.ok(status == 200, "a charset is fine", status)
    status, _, _ = s.post(PING, Mcp_Session_Id=session, Content_Encoding="gzip")
    tap.ok(status == 415, "a compressed body: 415", status)
    status, _, _ = s.post(PING, Mcp_Session_Id=session, Accept="text/html")
    tap.ok(status == 406, "a client that takes no JSON: 406", status)
    for method, path, want in (("OPTIONS", "/mcp", 405), ("GET", "/mcp", 405), ("PUT", "/mcp", 405),
                               ("HEAD", "/mcp", 405), ("GET", "/", 404), ("POST", "/mcp/x", 404),
                               ("POST", "//mcp", 404), ("POST", "/%2e%2e/mcp", 404),
                               ("POST", "/mcp%00", 404), ("POST", "/MCP", 404)):
        got = s.raw((s.head(0, method, path) + "Content-Length: 0\r\n\r\n").encode())
        status, headers, _ = parse_answer(got)
        tap.ok(status == want or (path == "/mcp%00" and status in (200, 400)), f"{method} {path}: {want}",
               (status, got[:200]))
    serves(s, session, "browsers")
    s.end()


def framing():
    s = Http(place)
    session = s.open()
    body = json.dumps(PING).encode()
    ok_head = s.head(0, Mcp_Session_Id=session)
    length = f"Content-Length: {len(body)}\r\n"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)

    def case(name, data, want, **more):
        begin = time.monotonic()  # what is not answered at all takes the whole wait
        got = s.raw(data, **more)
        status = parse_answer(got)[0]
        tap.ok(status in want and time.monotonic() - begin < WAIT, f"{name}: {want}", (status, got[:200]))

    def req(extra, data=body):
        return (ok_head + extra + "\r\n").encode() + data

    no = (400, 0)  # refused, or the connection closed
    case("a length and chunks", req(length + "Transfer-Encoding: chunked\r\n", chunked), no)
    case("two lengths", req(length + length), no)
    case("two different lengths", req(length + "Content-Length: 5\r\n"), no)
    for value in ("+5", "-5", "0x10", "5 5", "5,5", "99999999999999999999999", "", "a"):
        case(f"length '{value}'", req(f"Content-Length: {value}\r\n"), (400, 413, 0))
    case("chunked twice", req("Transfer-Encoding: chunked, chunked\r\n", chunked), no)
    case("two encodings", req("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunked), no)
    case("gzip, chunked", req("Transfer-Encoding: gzip, chunked\r\n", chunked), (400, 501, 0))
    case("a space before the colon", req("Transfer-Encoding : chunked\r\n", chunked), no)
    case("a chunk of 2^64", req("Transfer-Encoding: chunked\r\n", b"10000000000000000\r\nx\r\n"), (400, 413, 0))
    case("a chunk size that is none", req("Transfer-Encoding: chunked\r\n", b"zz\r\nx\r\n0\r\n\r\n"), no)
    case("chunks", req("Transfer-Encoding: chunked\r\n", chunked), (200,))
    case("chunk extensions of 1 MB", req("Transfer-Encoding: chunked\r\n",
                                         b"5;" + b"x" * (1 << 20) + b"\r\n"), (400, 413, 500, 0))
    case("chunks without end", req("Transfer-Encoding: chunked\r\n",
                                   (b"100000\r\n" + b" " * (1 << 20) + b"\r\n") * 40), (400, 413, 0))
    case("33 MB", req(f"Content-Length: {33 << 20}\r\n"), (413,))
    case("10 GB", req("Content-Length: 10737418240\r\n"), (413,))
    case("a name with a space", req(length + "X Y: 1\r\n"), no)
    case("no Host", (ok_head.replace(f"Host: 127.0.0.1:{s.port}\r\n", "") + length + "\r\n").encode() + body, no)
    case("two Hosts", req(length + "Host: localhost\r\n"), no)
    case("10 000 headers", req("".join(f"X-{i}: y\r\n" for i in range(10000)) + length), (400, 413, 431, 0))
    case("a header of 1 MB", req("X: " + "y" * (1 << 20) + "\r\n" + length), (400, 413, 431, 0))
    case("a request line of 1 MB", b"POST /" + b"x" * (1 << 20) + b" HTTP/1.1\r\n\r\n", (400, 414, 431, 0))
    case("HTTP/0.9", b"GET /mcp\r\n\r\n", (400, 401, 403, 505, 0), half_close=True)
    case("HTTP/3.0", ok_head.replace("HTTP/1.1", "HTTP/3.0").encode() + b"\r\n", (400, 505, 0))
    case("an HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (400, 401, 403, 505, 0))
    case("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), (400, 0),
         half_close=True)
    case("a NUL in a header", req(length + "X: a\0b\r\n"), (200, 400, 0))
    case("absolute form", (s.head(0, path="http://evil.example/mcp", Mcp_Session_Id=session) + length +
                           "\r\n").encode() + body, (400, 404))
    case("authority form", b"CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
         (400, 401, 403, 404, 405, 501))
    case("Expect", req(length + "Expect: 100-continue\r\n"), (100, 200))
    case("half a request and the end", req("Content-Length: 100\r\n"), (0, 400), half_close=True)
    case("a whole one and half the end", req(length), (200,), half_close=True)
    case("empty", req("Content-Length: 0\r\n", b""), (400,))
    serves(s, session, "framing")

    with s.connect() as c:
        one = req(length)
        threading.Thread(target=lambda: c.sendall(one * 1000), daemon=True).start()
        got = b""
        while got.count(b"HTTP/1.1 200") < 1000:
            more = c.recv(1 << 16)
            if not more:
                break
            got += more
    tap.ok(got.count(b"HTTP/1.1 200") == 1000, "1000 requests in a pipe", got.count(b"HTTP/1.1 200"))

    slow = [s.connect() for _ in range(500)]
    for c in slow:
        c.sendall(b"POST /mcp HT")
    begin = time.monotonic()
    serves(s, session, "500 connections that trickle")
    # they are cut after half a minute: it was not that which let it through
    tap.ok(time.monotonic() - begin < 25, "without waiting for them", time.monotonic() - begin)
    for c in slow:
        c.close()
    with s.connect() as c:  # gone in the middle of a body
        c.sendall(req("Content-Length: 1000\r\n", b"{"))
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    serves(s, session, "reset in a body")
    fds = len(os.listdir(f"/proc/{s.p.pid}/fd"))
    tap.ok(eventually(lambda: len(os.listdir(f"/proc/{s.p.pid}/fd")) < 60), "no descriptor is left", fds)
    code, _, err = s.end()
    tap.ok(code == 0 and err == b"", "and nothing was said about it", (code, err))


def messages():
    s = Http(place)
    status, _, body = s.post(PING)
    tap.ok(status == 400, "no session: 400", (status, body))
    session = s.open()
    for name, data, want, code in (("not JSON", b"x", 400, -32700), ("a batch", b"[]", 400, -32600),
                                   ("not 2.0", b'{"id":1,"method":"ping"}', 400, -32600),
                                   ("deep", b"[" * 100000, 400, -32600)):
        status, _, body = s.post(data, Mcp_Session_Id=session)
        tap.ok(status == want and json.loads(body)["error"]["code"] == code, f"{name}: {want}", (status, body))
    status, _, body = s.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, Mcp_Session_Id=session)
    tap.ok(status == 202 and body == b"", "a notification: 202", (status, body))
    status, _, body = s.post({"jsonrpc": "2.0", "id": 4, "result": {}}, Mcp_Session_Id=session)
    tap.ok(status == 202, "a response: 202", (status, body))
    status, _, body = s.post(PING, Mcp_Session_Id="0" * 32)
    tap.ok(status == 404 and json.loads(body)["error"]["code"] == -32001, "an unknown session: 404", body)
    status, _, body = s.post(PING, Mcp_Session_Id=session, MCP_Protocol_Version="1999-01-01")
    tap.ok(status == 400, "an unknown revision: 400", body)
    status, _, body = s.post(PING, Mcp_Session_Id=session, MCP_Protocol_Version="2025-11-25")
    tap.ok(status == 200, "the right one", body)
    for seconds in (1.2, 4, 12, 36):  # the first that is long enough for something to say
        status, headers, body = s.post({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
            "name": "bash", "arguments": {"command": f"sleep {seconds}"}, "_meta": {"progressToken": "p"}}},
            Mcp_Session_Id=session)
        if b"notifications/progress" in body:
            break
    tap.ok(headers["content-type"] == "text/event-stream" and body.count(b"notifications/progress") >= 1
           and body.count(b'"id":5') == 1, "progress makes a stream of the answer", body)
    status, headers, body = s.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    tap.ok("error" in json.loads(body) and "mcp-session-id" not in headers,
           "an initialize that fails opens nothing", (headers, body))

    other = s.open()
    s.call(session, "bash", command="cd /usr; export A=1; touch ~/mine")
    r = s.call(other, "bash", command="pwd; echo ${A-none}; ls ~/mine 2>&1 | wc -c")
    tap.ok(data_of(r)["stdout"].startswith(f"{place.ws}\nnone\n"), "sessions have sandboxes of their own", r)
    a, b = (data_of(s.call(x, "sandbox_info"))["id"] for x in (session, other))
    tap.ok(a != b, "with ids of their own", (a, b))

    mark = f"6{os.getpid()}.5"
    got = []
    t = threading.Thread(target=lambda: got.append(s.post(
        {"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {
            "name": "bash", "arguments": {"command": f"sleep {mark}"}}}, Mcp_Session_Id=session)))
    t.start()
    eventually(lambda: alive(mark))
    s.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}},
           Mcp_Session_Id=other)
    time.sleep(0.3)
    tap.ok(alive(mark), "another session cannot cancel it")
    s.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}},
           Mcp_Session_Id=session)
    tap.ok(eventually(lambda: not alive(mark)), "its own can")
    t.join(WAIT)
    tap.ok(got and json.loads(got[0][2])["error"]["code"] == -32800, "and the request ends", got)
    s.call(session, "bash", command=f"sleep {mark}", run_in_background=True)
    eventually(lambda: alive(mark))
    status, _, _ = s.post(b"", method="DELETE", Mcp_Session_Id=session)
    tap.ok(status == 200 and eventually(lambda: not alive(mark)), "DELETE ends the session and its sandbox")
    status, _, _ = s.post(b"", method="DELETE", Mcp_Session_Id=session)
    tap.ok(status == 404, "once", status)
    s.call(other, "bash", command=f"sleep {mark}", run_in_background=True)
    eventually(lambda: alive(mark))
    s.end()
    tap.ok(eventually(lambda: not alive(mark)), "with the server everything ends", alive(mark))


def stateless():
    s = Http(place, tokens=2)

    def post(method, params=None, token=0, drop=(), **headers):
        msg = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params or {}, _meta=META)}
        h = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method}
        if params and "name" in params:
            h["Mcp_Name"] = params["name"]
        h.update(headers)
        return s.post(msg, token, drop=drop, **h)

    status, headers, body = post("server/discover")
    tap.ok(status == 200 and "mcp-session-id" not in headers, "discover", body)
    status, _, body = post("tools/call", {"name": "bash", "arguments": {"command": "echo a > ~/f; echo $$"}})
    tap.ok(status == 200 and json.loads(body)["result"]["resultType"] == "complete", "a call", body)
    _, _, body = post("tools/call", {"name": "bash", "arguments": {"command": "cat ~/f"}})
    tap.ok(data_of(json.loads(body)["result"])["stdout"] == "a\n", "one token, one sandbox", body)
    _, _, body = post("tools/call", {"name": "bash", "arguments": {"command": "cat ~/f"}}, token=1)
    tap.ok(data_of(json.loads(body)["result"])["exit_code"] != 0, "another token has another", body)
    for name, more in (("no Mcp-Method", {"drop": ("Mcp-Method",)}), ("no Mcp-Name", {"drop": ("Mcp-Name",)}),
                       ("no revision", {"drop": ("MCP-Protocol-Version",)}),
                       ("another method", {"Mcp_Method": "tools/list"}),
                       ("another name", {"Mcp_Name": "ls"}), ("another case", {"Mcp_Name": "BASH"}),
                       ("another revision", {"MCP_Protocol_Version": "2025-11-25"})):
        status, _, body = post("tools/call", {"name": "bash", "arguments": {"command": "true"}}, **more)
        tap.ok(status == 400 and json.loads(body)["error"]["code"] == -32020, f"{name}: -32020", (status, body))
    status, _, body = post("initialize")
    tap.ok(status == 404 and json.loads(body)["error"]["code"] == -32601, "initialize: 404", body)
    mark = f"7{os.getpid()}.5"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "bash", "arguments": {"command": f"sleep {mark}"}, "_meta": META}}).encode()
    c = s.connect()
    c.sendall((s.head(0, MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/call", Mcp_Name="bash") +
               f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
    eventually(lambda: alive(mark))
    c.close()
    tap.ok(eventually(lambda: not alive(mark)), "hanging up cancels", alive(mark))
    status, _, _ = post("server/discover")
    tap.ok(status == 200, "and the server goes on")
    s.end()


try:
    for part in (auth, browsers, framing, messages, stateless):
        part()
finally:
    place.remove()
tap.end()

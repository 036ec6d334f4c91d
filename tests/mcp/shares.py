#!/usr/bin/env python3
"""shares.py: what the holder of one token, or a client without any, can use up over HTTP. TAP.

Sessions, running requests and connections are divided between the tokens: whatever one takes, the
next request with another token is served.
"""
import json
import resource
import select

from client import WAIT, Http, Place, Tap

tap = Tap()
place = Place()
PING = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
INIT = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
SESSIONS, CALLS, CONNS, UNCLAIMED = 64, 256, 1024, 64


def request(s, msg, token, **more):
    body = json.dumps(msg).encode()
    return (s.head(token, **more) + f"Content-Length: {len(body)}\r\n\r\n").encode() + body


def sessions():
    s = Http(place, tokens=3)
    opened = []
    for _ in range(SESSIONS):
        status, headers, body = s.post(INIT, 0)
        if status != 200:
            break
        opened.append(headers["mcp-session-id"])
    tap.ok(len(opened) == SESSIONS // 3 and status == 503 and b"of this token" in body,
           "a token has its share of the sessions", (len(opened), status, body))
    others = [s.open(t) for t in (1, 2) for _ in range(SESSIONS // 3)]
    tap.ok(len(set(others)) == 2 * (SESSIONS // 3), "the others have theirs meanwhile")
    s.post(b"", 0, method="DELETE", Mcp_Session_Id=opened[0])
    tap.ok(s.post(INIT, 0)[0] == 200, "one that ended makes room")
    tap.ok(s.post(INIT, 0)[0] == 503, "for one")
    tap.ok(s.end()[0] == 0, "an orderly end")
    s = Http(place)
    opened = [s.post(INIT)[0] for _ in range(SESSIONS + 1)]
    tap.ok(opened == [200] * SESSIONS + [503], "a single token has all of them", opened.count(200))
    s.end()


def calls():
    s = Http(place, tokens=4)
    mine, other = s.open(0), s.open(1)
    sleep = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "bash", "arguments": {"command": "sleep 3000", "timeout": 600000}}}
    conns = []
    for i in range(CALLS // 4 + 3):
        c = s.connect()
        c.sendall(request(s, {**sleep, "id": 10 + i}, 0, Mcp_Session_Id=mine))
        conns.append(c)
    answered = {}
    while len(answered) < 3:
        ready = select.select([c for c in conns if c not in answered], [], [], WAIT)[0]
        if not ready:
            break
        answered.update((c, c.recv(12)) for c in ready)
    tap.ok(list(answered.values()) == [b"HTTP/1.1 503"] * 3, "a token has its share of the running requests",
           list(answered.values()))
    r = s.call(other, "bash", 1, command="echo served")
    tap.ok(r["structuredContent"]["stdout"] == "served\n", "another token's are served meanwhile", r)
    for c in conns:
        c.close()
    s.post(b"", 0, method="DELETE", Mcp_Session_Id=mine)
    tap.ok(s.end()[0] == 0, "an orderly end")


def silent():
    s = Http(place, tokens=2)
    session = s.open(0)
    kept = s.connect()
    kept.sendall(request(s, PING, 0, Mcp_Session_Id=session))
    tap.ok(kept.recv(12) == b"HTTP/1.1 200", "a connection with a token")
    conns = [s.connect() for _ in range(CONNS + 200)]
    for c in conns[::2]:
        try:
            c.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
        except OSError:
            pass
    tap.ok(s.post(PING, 0, Mcp_Session_Id=session)[0] == 200, "beside silent connections a new one is served")
    kept.recv(1 << 16)
    kept.sendall(request(s, PING, 0, Mcp_Session_Id=session))
    tap.ok(kept.recv(12) == b"HTTP/1.1 200", "and one that has shown a token stays")
    ended = 0
    for c in conns[:100]:
        c.settimeout(60)
        try:
            ended += c.recv(1) == b""
        except ConnectionError:
            ended += 1
    tap.ok(ended == 100, "the oldest of them were closed", ended)
    for c in conns:
        c.close()
    kept.close()
    tap.ok(s.end()[0] == 0, "an orderly end")


def connections():
    s = Http(place, tokens=2)
    session, conns, status = s.open(0), [], b""
    share = (CONNS - UNCLAIMED) // 2
    for _ in range(share + 20):
        c = s.connect()
        c.sendall(request(s, PING, 0, Mcp_Session_Id=session))
        status = c.recv(1 << 16)[:12]
        if status != b"HTTP/1.1 200":
            c.close()
            break
        conns.append(c)
    # the connection of open() counts until the server has seen its end
    tap.ok(share - 1 <= len(conns) <= share and status == b"HTTP/1.1 503",
           "a token has its share of the connections", (len(conns), status))
    other = s.open(1)
    tap.ok(s.post(PING, 1, Mcp_Session_Id=other)[0] == 200, "another token's are served meanwhile")
    for c in conns:
        c.close()
    tap.ok(s.end()[0] == 0, "an orderly end")


NOFILE = 4 * CONNS
if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < NOFILE:
    print("1..0 # SKIP needs 4096 descriptors")
    raise SystemExit(0)
resource.setrlimit(resource.RLIMIT_NOFILE, (NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    sessions()
    calls()
    silent()
    connections()
finally:
    place.remove()
tap.end()

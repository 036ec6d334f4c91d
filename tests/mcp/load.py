#!/usr/bin/env python3
"""load.py [N]: many calls at once, and N (default 1000) one after the other. TAP.

A leak of one descriptor, thread or allocation a call is N of them at the end; the bounds are far
below that, and far above what a busy machine does.
"""
import os
import sys

from client import Http, Place, Stdio, Tap, data_of, eventually

N = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
tap = Tap()
place = Place()


def figures(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        status = dict(line.split(":", 1) for line in f)
    return {"fds": len(os.listdir(f"/proc/{pid}/fd")), "kb": int(status["RssAnon"].split()[0]),
            "threads": int(status["Threads"])}


def mixed(i):
    """The i-th of calls of every kind: (tool, arguments, test of the result)."""
    return (
        ("bash", {"command": f"echo {i}"}, lambda r: data_of(r)["stdout"] == f"{i}\n"),
        ("write", {"file_path": f"f{i % 50}", "content": f"{i}\n" * 20}, lambda r: not r["isError"]),
        ("read", {"file_path": "base"}, lambda r: "one" in r["content"][0]["text"]),
        ("ls", {}, lambda r: data_of(r)["entries"]),
        ("grep", {"pattern": "o.e", "output_mode": "content"}, lambda r: data_of(r)["matches"]),
        ("read", {"file_path": "missing"}, lambda r: r["isError"]),
        ("process", {"action": "list"}, lambda r: not r["isError"]),
        ("glob", {"pattern": "b*"}, lambda r: data_of(r)["files"] == ["base"]),
    )[i % 8]


def overlapping():
    s = Stdio(place)
    for turn in range(2):
        calls = {}
        for i in range(200):
            tool, args, test = mixed(i)
            token = i if i % 3 == 0 else None
            if i % 8 == 0:
                args = {"command": f"sleep 0.0{i % 7}; echo {i}"}
            calls[s.start_call(tool, args, token)] = test
            if i % 20 == 19:  # some are given up at once
                calls.pop(s.next)
                s.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": s.next}})
        good = sum(1 for n, test in calls.items() if test(s.answer(n)["result"]))
        tap.ok(good == len(calls), f"200 calls at once, turn {turn + 1}", (good, len(calls)))
    code, _, _, err = s.end()
    tap.ok(code == 0 and not err, "and an orderly end", (code, err[:4000]))


def sessions():
    import threading
    s = Http(place, tokens=2)
    bad = []

    def client(k):
        try:
            session = s.open(k % 2)
            for i in range(25):
                tool, args, test = mixed(i)
                if not test(s.call(session, tool, k % 2, **args)):
                    bad.append((k, i))
            for seconds in (1.2, 4, 12, 36):  # the first that is long enough for something to say
                status, headers, body = s.post({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
                    "name": "bash", "arguments": {"command": f"sleep {seconds}"}, "_meta": {"progressToken": k}}},
                    k % 2, Mcp_Session_Id=session)
                if b"notifications/progress" in body:
                    break
            if headers.get("content-type") != "text/event-stream" or b'"id":3' not in body:
                bad.append((k, status, headers, body))
            s.post(b"", k % 2, method="DELETE", Mcp_Session_Id=session)
        except (AssertionError, OSError, KeyError, ValueError) as e:
            bad.append((k, repr(e)))
    threads = [threading.Thread(target=client, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    tap.ok(not bad, "8 sessions at once with 25 calls each, over HTTP", bad[:5])
    code, _, err = s.end()
    tap.ok(code == 0 and not err, "and an orderly end", (code, err[:4000]))


def flat():
    s = Stdio(place)
    for i in range(max(200, N // 10)):
        s.call(*mixed(i)[:1], **mixed(i)[1])
    before = figures(s.p.pid)
    for i in range(N):
        tool, args, test = mixed(i)
        r = s.call(tool, **args)
        if not test(r):
            tap.ok(False, f"call {i}", r)
            break
    ok = eventually(lambda: all(figures(s.p.pid)[k] <= before[k] + 4 for k in ("fds", "threads")))
    after = figures(s.p.pid)
    print(f"# {N} calls: {before} -> {after}")
    # Sanitizers keep what was freed; only descriptors and threads count there.
    room = 1 << 20 if os.environ.get("SANITIZED") else 2048
    tap.ok(ok and after["kb"] <= before["kb"] + room and after["threads"] <= before["threads"] + 4,
           f"{N} calls leave nothing behind", (before, after))
    code, _, _, err = s.end()
    tap.ok(code == 0 and not err, "and an orderly end", (code, err[:4000]))


with open(os.path.join(place.ws, "base"), "w", encoding="ascii") as f:
    f.write("one\n")
try:
    overlapping()
    sessions()
    flat()
finally:
    place.remove()
tap.end()

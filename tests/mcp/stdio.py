#!/usr/bin/env python3
"""stdio.py: what the server does over standard input and output, without any SDK.

Malformed messages, order, cancelling, progress, background processes, the end. TAP.
"""
import base64
import json
import os
import signal
import struct
import time
import zlib

from client import Place, Stdio, Tap, alive, data_of, eventually, text_of

tap = Tap()
place = Place()


def protocol():
    s = Stdio(place, start=False)
    r = s.ask("tools/list")
    tap.ok(r.get("error", {}).get("code") == -32600, "a call before initialize is refused", r)
    tap.ok(s.ask("ping").get("result") == {}, "ping works before initialize")
    r = s.start("2099-01-01")
    tap.ok(r["result"]["protocolVersion"] == "2025-11-25", "an unknown revision gets the latest", r)
    tap.ok(s.ask("initialize", {"protocolVersion": "2025-11-25"})["error"]["code"] == -32600,
           "a second initialize is refused")
    for name in ("resources/list", "prompts/list", "logging/setLevel", "nothing", ""):
        r = s.ask(name)
        tap.ok(r["error"]["code"] == -32601, f"'{name}' is no method", r)
    r = s.ask("tools/list", {"cursor": "x"})
    tap.ok(r["error"]["code"] == -32602, "a cursor of nowhere is refused", r)
    tools = s.ask("tools/list")["result"]["tools"]
    tap.ok([t["name"] for t in tools] == ["bash", "process", "read", "write", "edit", "ls", "glob",
                                          "grep", "delete", "sandbox_info"], "all tools are listed")
    tap.ok(place.ws in tools[0]["description"] and "Network: none" in tools[0]["description"],
           "bash says where it is and that there is no network", tools[0]["description"])
    tap.ok(tools[0]["annotations"]["openWorldHint"] is False, "and its hints say so too")
    for params, what in (({"name": "nosuch"}, "an unknown tool"), ({}, "a call without a name"),
                         ({"name": 7}, "a name that is a number"), (None, "a call without params"),
                         ({"name": "ls", "arguments": []}, "arguments that are a list")):
        r = s.ask("tools/call", params)
        tap.ok(r.get("error", {}).get("code") == -32602, f"{what} is -32602", r)
    code, _, out, err = s.end()
    tap.ok(code == 0 and out == b"" and err == "", "the end is silent", (code, out, err))
    for version in ("2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        s = Stdio(place, start=False)
        r = s.start(version)
        tap.ok(r["result"]["protocolVersion"] == version, f"{version} is spoken", r)
        s.end()


def stateless():
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}
    s = Stdio(place, start=False)
    r = s.ask("server/discover", {"_meta": meta})
    tap.ok(r["result"]["supportedVersions"] == ["2026-07-28"] and
           r["result"]["resultType"] == "complete" and r["result"]["ttlMs"] >= 0,
           "server/discover answers without initialize", r)
    r = s.ask("server/discover")
    tap.ok(r["error"]["code"] == -32602, "without its _meta it is refused", r)
    r = s.ask("tools/list", {"_meta": dict(meta, **{
        "io.modelcontextprotocol/protocolVersion": "2030-01-01"})})
    tap.ok(r["error"]["code"] == -32022 and r["error"]["data"] ==
           {"supported": ["2026-07-28"], "requested": "2030-01-01"}, "an unknown revision", r)
    r = s.ask("tools/list", {"_meta": meta})
    tap.ok(len(r["result"]["tools"]) == 10 and r["result"]["cacheScope"] in ("public", "private"),
           "tools/list says how long it holds")
    r = s.ask("tools/call", {"name": "bash", "arguments": {"command": "echo hi"}, "_meta": meta})
    tap.ok(data_of(r["result"])["stdout"] == "hi\n" and r["result"]["resultType"] == "complete"
           and r["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "caisson",
           "tools/call works", r)
    for gone in ("initialize", "ping", "logging/setLevel"):
        r = s.ask(gone, {"_meta": meta, "protocolVersion": "2025-11-25"})
        tap.ok(r["error"]["code"] == -32601, f"{gone} is gone there", r)
    tap.ok(s.start()["result"]["protocolVersion"] == "2025-11-25", "initialize still works after")
    s.end()


def malformed():
    s = Stdio(place)
    cases = [
        ("not JSON", b"hello", None, -32700),
        ("an empty object", b"{}", None, -32600),
        ("a batch", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600),
        ("a batch of 10 000", b"[" + b"{}," * 9999 + b"{}]", None, -32600),
        ("not 2.0", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1, -32600),
        ("id null", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
        ("id 1.5", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
        ("id {}", b'{"jsonrpc":"2.0","id":{},"method":"ping"}', None, -32600),
        ("id true", b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
        ("no method", b'{"jsonrpc":"2.0","id":4}', 4, -32600),
        ("params []", b'{"jsonrpc":"2.0","id":5,"method":"ping","params":[]}', 5, -32602),
        ("depth 100 000", b'{"jsonrpc":"2.0","id":6,"method":"ping","params":{"a":' +
         b"[" * 100000, 6, -32600),
        ("two ids", b'{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}', 7, -32700),
        ("bad UTF-8", b'{"jsonrpc":"2.0","id":9,"method":"\xff"}', 9, -32700),
        ("a lone surrogate", b'{"jsonrpc":"2.0","id":10,"method":"\\ud800"}', 10, -32700),
        ("a NUL", b'{"jsonrpc":"2.0","id":11,"method":"a\\u0000b"}', 11, -32700),
        ("2^63", b'{"jsonrpc":"2.0","id":12,"method":"ping","params":{"a":9223372036854775808}}',
         12, -32700),
        ("1e400", b'{"jsonrpc":"2.0","id":13,"method":"ping","params":{"a":1e400}}', 13, -32700),
        ("a BOM", b'\xef\xbb\xbf{"jsonrpc":"2.0","id":14,"method":"ping"}', 14, -32700),
        ("trailing bytes", b'{"jsonrpc":"2.0","id":15,"method":"ping"}x', 15, -32700),
        ("33 MB", b'{"jsonrpc":"2.0","id":16,"method":"ping","params":{"a":"' +
         b"x" * (33 << 20) + b'"}}', None, -32600),
    ]
    for name, text, want, code in cases:
        s.raw(text + b"\n")
        r = s.read()
        tap.ok(r is not None and r.get("id") == want and r["error"]["code"] == code,
               f"{name}: {code}", r)
    s.raw(b'{"jsonrpc":"2.0","id":1,"result":{}}\n\n  \n' +
          b'{"jsonrpc":"2.0","method":"notifications/unknown"}\n' * 20000 +
          b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}\n' +
          b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}\n')
    tap.ok(s.ask("ping").get("result") == {} and not s.got,
           "responses, floods of notifications and blank lines get no answer", s.got)
    whole = json.dumps({"jsonrpc": "2.0", "id": 17, "method": "tools/call", "params": {
        "name": "bash", "arguments": {"command": "true"}}}).encode()
    for n in range(1, len(whole)):
        s.raw(whole[:n] + b"\n")
        r = s.read()
        if not r or r["error"]["code"] != -32700:
            tap.ok(False, f"cut after {n} bytes", r)
            break
    else:
        tap.ok(True, "a request cut anywhere is -32700")
    for tool, args in (("bash", {"command": ["ls"]}), ("bash", {"command": "ls", "timeout": -1}),
                       ("read", {"file_path": 1}), ("write", {"file_path": "x"}),
                       ("edit", {"file_path": "x", "old_string": "", "new_string": ""}),
                       ("grep", {"pattern": "("}), ("glob", {"pattern": 1}),
                       ("ls", {"path": "", "x": 1}), ("process", {"action": "stop"}),
                       ("process", {"action": "dance"}), ("delete", {})):
        r = s.call(tool, **args)
        tap.ok(r["isError"] and "structuredContent" not in r and text_of(r).startswith("Error"),
               f"{tool} {json.dumps(args)[:50]} is an error the model can read", r)
    s.raw(b'{"jsonrpc":"2.0","id":18,"method":"ping"}\r\n')
    tap.ok(s.answer(18) is not None, "CRLF is fine")
    s.raw(b'{"jsonrpc":"2.0","id":"unfinished"')
    code, took, out, _ = s.end()
    tap.ok(code == 0 and out == b"", "half a line at the end is nothing", (code, out))


def png(width=3, height=2):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + b"\xff\0\0" * width for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0,
                                                             0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def files():
    s = Stdio(place)

    def put(name, data):
        with open(os.path.join(place.ws, name), "wb") as f:
            f.write(data)

    r = s.call("write", file_path="d/one.txt", content="α\nbeta\ngamma\n")
    tap.ok(data_of(r)["bytes"] == 14 and not r["isError"], "write", r)
    r = s.call("read", file_path="d/one.txt")
    tap.ok(text_of(r) == "     1\tα\n     2\tbeta\n     3\tgamma\n" and "structuredContent" not in r,
           "read numbers lines from 1", r)
    r = s.call("read", file_path="d/one.txt", offset=1, limit=1)
    tap.ok(text_of(r) == "     2\tbeta\n\n[lines 2 to 2 of 3; go on with offset 2]",
           "a window says where to go on", r)
    r = s.call("read", file_path="d/one.txt", offset=2)
    tap.ok(text_of(r) == "     3\tgamma\n", "and that is where it goes on", r)
    r = s.call("read", file_path="d/one.txt", limit=0)
    tap.ok(text_of(r) == "[3 lines, 14 bytes]", "limit 0 only counts", r)
    r = s.call("write", file_path="logs/log", content="one\n", append=True)
    r = s.call("write", file_path="logs/log", content="two\n", append=True)
    tap.ok(data_of(r)["bytes"] == 4 and "Appended 4 bytes" in text_of(r), "write appends", r)
    tap.ok(text_of(s.call("read", file_path="logs/log")).endswith("2\ttwo\n"), "to the file")
    r = s.call("read", file_path="d/one.txt", offset=9)
    tap.ok("only 3 lines" in text_of(r), "an offset behind the end is told", r)
    put("empty", b"")
    tap.ok("empty" in text_of(s.call("read", file_path="empty")), "an empty file says so")
    put("long", b"".join(b"%06d %s\n" % (i, b"x" * 200) for i in range(1900)))
    r = text_of(s.call("read", file_path="long"))
    last = r[r.rindex("[lines 1 to "):].split()
    tap.ok(len(r) < 110 * 1024 and f"\n{int(last[3]):6}\t" in r and
           f"\n{int(last[3]) + 1:6}\t" not in r and last[5][:4] == "1900",
           "long text is cut at a line, and the note is right", r[-200:])
    put("wide", b"y" * (300 << 10))
    tap.ok("longer than is shown" in text_of(s.call("read", file_path="wide"))[-120:],
           "one endless line is cut and told")
    put("bin", b"\0\1\2" * 100)
    r = s.call("read", file_path="bin")
    tap.ok(r["isError"] and "binary" in text_of(r), "a binary file is refused with advice", r)
    put("pic.txt", png())
    r = s.call("read", file_path="pic.txt")
    tap.ok(r["content"] == [{"type": "image", "mimeType": "image/png",
                             "data": base64.b64encode(png()).decode()}] and not r["isError"],
           "an image is image content, by its bytes", r)
    put("big.png", png() + b"\0" * (4 << 20))
    r = s.call("read", file_path="big.png")
    tap.ok(r["isError"] and "too_large" in text_of(r), "an image too large is an error", text_of(r))
    put("x.pdf", b"%PDF-1.4\n%%EOF\n")
    r = s.call("read", file_path="x.pdf")["content"][0]
    tap.ok(r["type"] == "resource" and r["resource"]["mimeType"] == "application/pdf" and
           r["resource"]["uri"].startswith("file:///"), "a PDF is a resource", r)
    put("v.svg", b"<svg xmlns='http://www.w3.org/2000/svg'></svg>\n")
    tap.ok("<svg" in text_of(s.call("read", file_path="v.svg")), "SVG is text")
    r = s.call("read", file_path="nosuch")
    tap.ok(r["isError"] and "not found" in text_of(r), "a missing file", r)
    r = s.call("edit", file_path="d/one.txt", old_string="beta", new_string="BETA")
    tap.ok(data_of(r)["occurrences"] == 1, "edit", r)
    r = s.call("edit", file_path="d/one.txt", old_string="a", new_string="b")
    tap.ok(not r["isError"] or "multiple" in text_of(r), "edit of many needs replace_all", r)
    r = s.call("edit", file_path="d/one.txt", old_string="zeta", new_string="b")
    tap.ok(r["isError"] and "no_match" in text_of(r), "a miss is an error", r)
    r = s.call("ls", path="d")
    tap.ok([e["path"] for e in data_of(r)["entries"]] == ["one.txt"], "ls", r)
    r = s.call("glob", pattern="**/*.txt")
    tap.ok(data_of(r)["files"] == ["d/one.txt", "pic.txt"], "glob", r)
    r = s.call("grep", pattern="B.TA", path="d")
    tap.ok(data_of(r) == {"files": ["one.txt"], "truncated": False}, "grep names files", r)
    r = s.call("grep", **{"pattern": "b.ta", "path": "d", "output_mode": "content", "-i": True,
                          "-C": 1})
    tap.ok(text_of(r) == "one.txt-1-α\none.txt:2:BETA\none.txt-3-gamma", "grep shows lines", r)
    r = s.call("grep", pattern="x", path="long", output_mode="count")
    tap.ok(data_of(r)["counts"][0]["count"] == 1900, "grep counts", r)
    r = s.call("grep", pattern="x", path="long", output_mode="content", head_limit=5)
    tap.ok(len(data_of(r)["matches"]) == 5 and data_of(r)["truncated"] and
           "head_limit" in data_of(r)["note"], "head_limit, and what is left out", r)
    os.mkdir(os.path.join(place.ws, "many"))
    for i in range(1200):
        put(f"many/{i:04}", b"")
    r = s.call("ls", path="many")
    tap.ok(len(data_of(r)["entries"]) == 1000 and "1000 of 1200" in data_of(r)["note"],
           "a long list is cut with a note", data_of(r).get("note"))
    r = s.call("delete", file_path="many")
    tap.ok(r["isError"], "a full directory is not deleted by accident", r)
    r = s.call("delete", file_path="many", recursive=True)
    tap.ok(data_of(r)["deleted"] and not os.path.exists(place.ws + "/many"), "delete", r)
    r = s.call("write", file_path="/etc/passwd", content="x")
    tap.ok(r["isError"], "nothing is written outside", r)
    r = s.call("sandbox_info")
    tap.ok(data_of(r)["backend"] == os.environ.get("CAISSON_BACKEND", "jail") and
           data_of(r)["layers"], "sandbox_info", r)
    s.end()


def gated(name, then="true"):
    """A command that says that it is up, and goes on when it is let go."""
    gate = f"{place.ws}/gate-{name}"
    return f"touch {gate}.up; until [ -e {gate}.go ]; do sleep 0.05; done; {then}"


def is_up(name):
    return os.path.exists(f"{place.ws}/gate-{name}.up")


def let_go(name):
    with open(f"{place.ws}/gate-{name}.go", "w", encoding="ascii"):
        pass


def commands():
    s = Stdio(place)
    r = s.call("bash", command="echo out; echo err >&2; exit 7")
    tap.ok(data_of(r) | {"duration_ms": 0} == {
        "stdout": "out\n", "stderr": "err\n", "exit_code": 7, "duration_ms": 0, "timed_out": False,
        "truncated": False} and not r["isError"], "a failing command is a result", r)
    s.call("bash", command="cd /usr && export A=kept && f() { echo f; }")
    r = s.call("bash", command="pwd; echo $A; f")
    tap.ok(data_of(r)["stdout"] == "/usr\nkept\nf\n", "the shell stays", r)
    slow = s.start_call("bash", {"command": gated("slow", "echo slow")})
    eventually(lambda: is_up("slow"))
    r = s.call("bash", command="pwd; echo ${A-unset}")
    tap.ok(data_of(r)["stdout"] == "/usr\nunset\n" and "separate shell" in data_of(r)["note"],
           "a call that overlaps runs in a separate shell in the same directory", r)
    let_go("slow")
    tap.ok(data_of(s.answer(slow)["result"])["stdout"] == "slow\n", "answers come out of order")
    r = s.call("bash", command="pwd; echo $A")
    tap.ok(data_of(r)["stdout"] == "/usr\nkept\n", "and the shell is as it was", r)
    r = s.call("bash", command="", restart=True)
    r2 = s.call("bash", command="pwd; echo ${A-unset}")
    tap.ok("restarted" in data_of(r)["note"] and data_of(r2)["stdout"] == place.ws + "\nunset\n",
           "restart begins anew", (r, r2))
    stuck = s.start_call("bash", {"command": gated("never")})
    eventually(lambda: is_up("never"))
    r = s.call("bash", command="echo new", restart=True)
    tap.ok(data_of(r)["stdout"] == "new\n", "restart ends what hangs in the shell", r)
    tap.ok(s.answer(stuck)["result"]["structuredContent"]["killed_by"] == "cancel",
           "whose call is answered")
    for ms in (300, 1000, 3000, 10000, 30000):  # the first that lets it begin
        r = s.call("bash", command="echo begin; sleep 600", timeout=ms)
        if data_of(r)["stdout"]:
            break
    tap.ok(data_of(r)["timed_out"] and data_of(r)["stdout"] == "begin\n" and
           "timed out" in text_of(r) and not r["isError"], "a timeout is a result", r)
    r = s.call("bash", command="seq 1 100000")
    tap.ok(data_of(r)["truncated"] and data_of(r)["stdout"].startswith("1\n2\n") and
           data_of(r)["stdout"].endswith("99999\n100000\n") and
           "bytes left out" in data_of(r)["stdout"] and "file" in data_of(r)["note"] and
           data_of(r)["total_bytes"]["stdout"] == 588895 and len(text_of(r)) < 40000,
           "long output is cut in the middle and told", text_of(r)[-300:])
    r = s.call("bash", command="printf '\\377\\0x'; exit 1")
    tap.ok(data_of(r)["stdout"] == "\ufffd\0x", "any bytes come out as JSON", r)
    s.end()


def denials():
    with open(place.ws + "/secret", "w", encoding="utf-8") as f:
        f.write("s")
    s = Stdio(place, "--deny", place.ws + "/secret")
    r = s.call("read", file_path="secret")
    tap.ok(r["isError"] and "denied" in text_of(r) and "rule" in text_of(r),
           "a denial names its rule", text_of(r))
    s.end()
    s = Stdio(place, "--allow-command", "echo")
    r = s.call("bash", command="cat /etc/passwd")
    tap.ok(r["isError"] and "denied" in text_of(r) and "int: " in text_of(r),
           "a command that is not allowed: the rule and the hint", text_of(r))
    s.end()


def cancelling():
    s = Stdio(place)
    mark = f"3{os.getpid()}.5"
    for how in ("in the shell", "beside it"):
        n = s.start_call("bash", {"command": f"sleep {mark} & sleep {mark}; echo done"})
        eventually(lambda: len(alive(mark)) >= 2)
        if how == "beside it":
            other = s.start_call("bash", {"command": f"sleep {mark}7"})
            eventually(lambda: alive(mark + "7"))
            n, first = other, n
        s.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": {"requestId": n, "reason": "test"}})
        gone = mark + "7" if how == "beside it" else mark
        tap.ok(eventually(lambda: not alive(gone)), f"cancelled {how}: its whole tree is gone",
               alive(gone))
    s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": first}})
    tap.ok(s.ask("ping")["result"] == {} and eventually(lambda: not alive(mark)),
           "the server goes on")
    r = s.call("bash", command="echo after")
    tap.ok(data_of(r)["stdout"] == "after\n" and not [m for m in s.got if m.get("id") in (n, first)],
           "cancelled requests get no answer", s.got)
    n = s.start_call("bash", {"command": gated("twice")})
    s.send({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {
        "name": "bash", "arguments": {"command": "true"}}})
    r = s.answer(n)
    tap.ok(r.get("error", {}).get("code") == -32600, "an id that is running is not taken twice", r)
    let_go("twice")
    tap.ok("result" in s.answer(n), "and the first is answered")
    s.end()


def progress():
    s = Stdio(place)
    lines = gated("lines").replace("sleep 0.05", "echo line; sleep 0.5")
    n = s.start_call("bash", {"command": lines}, "tok")
    m = s.start_call("bash", {"command": gated("lines")}, "tok")  # the same token twice
    while len(s.got) < 4 and (said := s.read()):
        s.got.append(said)
    let_go("lines")
    tap.ok("result" in s.answer(n) and "result" in s.answer(m), "both are answered")
    seen = [g["params"] for g in s.got if g.get("method") == "notifications/progress"]
    tap.ok(len(seen) >= 2 and all(p["progressToken"] == "tok" for p in seen), "progress comes", seen)
    mine = [p["progress"] for p in seen if "0 bytes" not in p["message"]]
    tap.ok(mine == sorted(mine) and len(set(mine)) == len(mine), "and grows", seen)
    s.got.clear()
    time.sleep(1.2)
    s.ask("ping")
    tap.ok(not s.got, "none comes after the answer", s.got)
    s.end()


def background():
    s = Stdio(place)
    r = s.call("bash", command="read x; echo got $x; echo err >&2; read y; echo end", run_in_background=True)
    pid = data_of(r)["pid"]
    tap.ok(pid > 0, "run_in_background gives a pid", r)
    r = s.call("process", action="output", pid=pid)
    tap.ok(data_of(r)["stdout"] == "" and data_of(r)["processes"][0]["state"] == "running",
           "it runs and is silent", r)
    r = data_of(s.call("process", action="input", pid=pid, input="hello\n"))
    out, err = r["stdout"], r["stderr"]  # what is there already comes with the answer
    for _ in range(100):
        if out and err:
            break
        r = data_of(s.call("process", action="output", pid=pid, timeout=1000))
        out, err = out + r["stdout"], err + r["stderr"]
    tap.ok((out, err) == ("got hello\n", "err\n"), "what it was fed comes back, once", (out, err))
    tap.ok(data_of(s.call("process", action="output", pid=pid))["stdout"] == "", "and not again")
    r = s.call("process", action="list")
    tap.ok([p["pid"] for p in data_of(r)["processes"]] == [pid], "list", r)
    r = s.call("process", action="input", pid=pid, close_input=True)
    ended = eventually(lambda: data_of(s.call("process", action="output", pid=pid))[
        "processes"][0]["state"] == "exited")
    tap.ok(ended, "the end of its input ends it")
    mark = f"4{os.getpid()}.5"
    r = s.call("bash", command=f"trap '' TERM; sleep {mark} & sleep {mark}; wait", run_in_background=True)
    eventually(lambda: len(alive(mark)) >= 2)
    r = s.call("process", action="stop", pid=data_of(r)["pid"], timeout=500)
    tap.ok(data_of(r)["processes"][0]["state"] == "exited" and eventually(lambda: not alive(mark)),
           "stop ends the whole tree, with force if it must", r)
    r = s.call("process", action="output", pid=999999)
    tap.ok(r["isError"], "a process that is none", r)
    r = s.call("bash", command="seq 1 30000", run_in_background=True)
    pid, text = data_of(r)["pid"], ""
    for _ in range(100):
        r = data_of(s.call("process", action="output", pid=pid, timeout=1000))
        text += r["stdout"]
        if r["processes"][0]["state"] == "exited" and not r["stdout"]:
            break
    tap.ok(text == "".join(f"{i}\n" for i in range(1, 30001)), "long output comes in parts, complete",
           len(text))
    s.end()


def ends():
    mark = f"5{os.getpid()}.5"
    busy = f"setsid sh -c 'trap \"\" TERM HUP INT; sleep {mark}' & sleep {mark}"
    s = Stdio(place)
    s.start_call("bash", {"command": busy})
    eventually(lambda: len(alive(mark)) >= 2)
    code, took, out, err = s.end()
    tap.ok(code == 0 and eventually(lambda: not alive(mark)),
           "the end of the input ends server and sandbox", (code, took, alive(mark)))
    tap.ok(all(json.loads(x) for x in out.splitlines()), "and nothing but messages was printed", out)
    for _ in range(5):  # not for long, and a machine that stands still may be too late
        s = Stdio(place)
        n = s.start_call("bash", {"command": "sleep 0.3; echo in time"})
        code, took, out, _ = s.end()
        if code != 0 or b"in time" in out:
            break
    tap.ok(code == 0 and b"in time" in out and json.loads(out)["id"] == n,
           "a call that is nearly done is answered before the end", out)
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        s = Stdio(place)
        s.start_call("bash", {"command": busy})
        eventually(lambda: len(alive(mark)) >= 2)
        s.p.send_signal(sig)
        code = s.p.wait(60)
        tap.ok(code == (-9 if sig == signal.SIGKILL else 0) and
               eventually(lambda: not alive(mark)), f"{sig.name} ends it all",
               (code, s.p.stderr.read() if code not in (0, -9) else ""))
    s = Stdio(place)  # a client that does not read, and then closes the input
    for i in range(40):
        s.start_call("bash", {"command": "seq 1 5000"})
    time.sleep(0.5)
    s.p.stdin.close()
    tap.ok(s.p.wait(60) == 0, "even if nobody reads its answers")
    s = Stdio(place)  # a client that stops reading for good
    s.p.stdout.close()
    s.start_call("bash", {"command": "echo x"})
    tap.ok(s.p.wait(60) == 0, "or its reader is gone")


def replaced():
    for life in (1, 2, 4, 8, 16, 32):  # the first in which it can be used
        s = Stdio(place, "--lifetime", f"{life}s")
        used, info = s.call("bash", command="echo $$; touch kept"), s.call("sandbox_info")
        if not used["isError"] and not info["isError"]:
            break
        s.end()
    tap.ok(data_of(used)["exit_code"] == 0, "a short life", used)
    first = data_of(info)["id"]
    r = s.call("ls")
    until = time.monotonic() + life + 60
    while not r["isError"] and time.monotonic() < until:
        time.sleep(0.1)
        r = s.call("ls")
    tap.ok(r["isError"] and "call again" in text_of(r), "the call that finds it ended says so", r)
    r = s.call("ls")
    tap.ok("this is a new one" in text_of(r) and "kept" in text_of(r),
           "the next has a new one, and is told", r)
    r = s.call("sandbox_info")
    tap.ok(data_of(r)["id"] != first and "new one" not in text_of(r), "told once", r)
    s.end()


def options():
    import subprocess
    for args, what in ((["--backend", "nosuch"], "an unknown backend"),
                       (["--workspace", place.top + "/nosuch"], "a workspace that is not there"),
                       (["--json", "x"], "an argument too many")):
        p = subprocess.run([os.environ["CAISSON"], "mcp", *args], env=place.env, timeout=60,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        tap.ok(p.returncode in (1, 2) and p.stderr and p.stdout.count("\n") <= 1,
               f"{what} is told at once", (p.returncode, p.stdout, p.stderr))


def copy_on_write():
    s = Stdio(place)
    r = s.ask("tools/call", {"name": "diff", "arguments": {}})
    tap.ok(r.get("error", {}).get("code") == -32602, "without --cow there is no diff", r)
    s.end()
    mine, kept = (os.path.join(place.ws, n) for n in ("mine", "kept"))
    for path in (mine, kept):
        with open(path, "w", encoding="ascii") as f:
            f.write("user\n")
    s = Stdio(place, "--cow", "--undo", "--backend", "jail")
    tools = [t["name"] for t in s.ask("tools/list")["result"]["tools"]]
    tap.ok(tools[-6:] == ["diff", "commit", "discard", "snapshot", "rollback", "undo"],
           "with it there are six more tools", tools)
    s.call("bash", command="echo agent >mine; echo agent >kept; mkdir -p .git/hooks; echo x >.git/hooks/x")
    r = s.call("diff")
    tap.ok("+agent" in data_of(r)["patch"] and "+agent" in text_of(r) and data_of(r)["files"] == 5,
           "diff has a patch", r)
    tap.ok(data_of(s.call("snapshot", name="one"))["name"] == "one", "snapshot")
    s.call("bash", command="rm mine")
    tap.ok(not s.call("undo")["isError"] and "agent" in text_of(s.call("read", file_path="mine")),
           "undo takes back a command")
    s.call("write", file_path="mine", content="later\n")
    tap.ok(not s.call("rollback", name="one")["isError"] and
           "agent" in text_of(s.call("read", file_path="mine")), "rollback restores")
    r = s.call("commit", paths=["kept", ".git"])
    with open(kept, encoding="ascii") as f:
        tap.ok(data_of(r)["written"] and data_of(r)["held"] == 1 and f.read() == "agent\n" and
               not os.path.exists(os.path.join(place.ws, ".git/hooks/x")),
               "commit writes what it may", r)
    tap.ok(not s.call("discard")["isError"] and
           "user" in text_of(s.call("read", file_path="mine")), "discard leaves the user's files")
    code, _, _, err = s.end()
    tap.ok(code == 0 and err == "", "the end is silent", (code, err))


try:
    for part in (protocol, stateless, malformed, files, commands, denials, cancelling, progress,
                 background, ends, replaced, options, copy_on_write):
        part()
finally:
    place.remove()
tap.end()

#!/usr/bin/env python3
"""call.py: what one bash call may ask for itself: directory, variables, hosts."""
import os

from client import Place, Stdio, Tap, data_of, text_of

tap, place = Tap(), Place()


def out(r):
    return data_of(r)["stdout"] if "structuredContent" in r else text_of(r)


def shells(s):
    os.makedirs(os.path.join(place.ws, "a/b"), exist_ok=True)
    r = s.call("bash", command="pwd; echo $X", cwd="a", env={"X": "1 2", "Y": ""})
    tap.ok(out(r).endswith("/ws/a\n1 2\n"), "cwd and env hold for the command", r)
    r = s.call("bash", command="pwd; echo [$X]")
    tap.ok(out(r).endswith("/ws\n[]\n"), "and for no other", r)
    s.call("bash", command="cd a; export KEPT=1")
    r = s.call("bash", command="pwd; echo [$KEPT]", cwd="b")
    tap.ok(out(r).endswith("/ws/a/b\n[]\n"), "cwd is relative to that of the shell", r)
    r = s.call("bash", command="pwd", cwd="/tmp")
    tap.ok(out(r) == "/tmp\n", "or absolute", r)
    r = s.call("bash", command="echo [$KEPT]; pwd")
    tap.ok(out(r).startswith("[1]\n") and out(r).endswith("/ws/a\n"), "the shell is as it was", r)
    r = s.call("bash", command="pwd", cwd="missing")
    tap.ok(r["isError"] and "missing" in text_of(r), "a cwd that is missing is an error", r)
    s.call("bash", command="mkfifo done")
    s.call("bash", command="echo $X; pwd; echo > ../done", env={"X": "9"}, cwd="b",
           run_in_background=True)
    s.call("bash", command="cat done")
    r = s.call("process", action="list")
    r = s.call("process", action="output", pid=data_of(r)["processes"][0]["pid"])
    tap.ok(data_of(r)["stdout"].startswith("9\n/") and "/ws/a/b\n" in data_of(r)["stdout"],
           "in the background too", r)


def refused(s):
    for args in ({"env": ["X=1"]}, {"env": {"X": 1}}, {"env": {"A=B": "c"}}, {"cwd": 1},
                 {"allowed_domains": "x y"}, {"allowed_domains": [1]}, {"env": {"X": None}},
                 {"cwd": "a", "restart": True}):
        r = s.call("bash", command="true", **args)
        tap.ok(r["isError"] and text_of(r).startswith("Error"), f"refused: {args}", r)


def hosts(s):
    r = s.call("bash", command="echo ran", allowed_domains=["no.test"])
    tap.ok(r["isError"] and "no.test" in text_of(r), "a host that the sandbox forbids", r)
    r = s.call("bash", command="echo ran", allowed_domains=["ok.test:443"])
    tap.ok(out(r) == "ran\n", "a host that it allows", r)
    r = s.call("bash", command="echo ran", allowed_domains=[])
    tap.ok(out(r) == "ran\n", "no host at all", r)
    r = s.call("bash", command="echo ran", package_managers=["nosuch"])
    tap.ok(r["isError"] and "nosuch" in text_of(r), "an unknown package manager", r)


session = Stdio(place, "--backend", "jail", "--allow", "ok.test:443")
shells(session)
refused(session)
hosts(session)
r = session.call("write", file_path="/tmp/private", content="x")
tap.ok("private" in data_of(r).get("note", "") and "private directory" in text_of(r),
       "a write to a private place says so", r)
r = session.call("write", file_path="kept", content="x")
tap.ok(data_of(r).get("note") is None, "a write to the workspace does not", r)
r = session.call("sandbox_info")
tap.ok(data_of(r)["permissions"]["write_dirs"] == [os.path.realpath(place.ws)],
       "sandbox_info lists the directories", r)
session.end()
place.remove()
tap.end()

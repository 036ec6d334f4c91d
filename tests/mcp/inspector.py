#!/usr/bin/env python3
"""inspector.py: the official inspector on the command line, over both transports. TAP.

With --strict it fails on schemas that some client would not take.
"""
import json
import os
import subprocess

import packages
from client import CAISSON, Http, Place, Tap

tap = Tap()
why = packages.missing("@modelcontextprotocol/inspector")
node = None if why else packages.node(22)
if not node:
    tap.skip("the inspector", why or "there is no Node 22 or newer")
    tap.end()
place = Place()
server = Http(place)
MAIN = os.path.join(packages.DIR,
                    "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
STDIO = [CAISSON, "mcp", "--workspace", place.ws]
HTTP = [f"http://127.0.0.1:{server.port}/mcp", "--transport", "http", "--header",
        f"Authorization: Bearer {server.tokens[0]}"]


def inspect(target, *args):
    p = subprocess.run([node, MAIN, "--cli", *target, *args], capture_output=True, text=True,
                       env=place.env, timeout=120, check=False)
    try:
        return p.returncode, json.loads(p.stdout), p.stderr
    except ValueError:
        return p.returncode, p.stdout, p.stderr


try:
    for name, target in (("stdio", STDIO), ("http", HTTP)):
        code, got, err = inspect(target, "--method", "tools/list", "--strict")
        tap.ok(code == 0 and len(got["tools"]) == 10, f"{name}: --strict finds nothing", (code, got, err))
        code, got, err = inspect(target, "--method", "tools/call", "--tool-name", "bash",
                                 "--tool-arg", "command=echo hi")
        tap.ok(code == 0 and got["structuredContent"]["stdout"] == "hi\n", f"{name}: a call",
               (code, got, err))
        code, got, err = inspect(target, "--method", "tools/call", "--tool-name", "nosuch")
        tap.ok(code != 0, f"{name}: a tool that is none", (code, got, err))
finally:
    server.end()
    place.remove()
tap.end()

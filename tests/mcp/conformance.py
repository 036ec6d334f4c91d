#!/usr/bin/env python3
"""conformance.py: the official conformance suite, for 2025-11-25 and 2026-07-28. TAP.

A scenario passes when each of its checks does. Those in NOT_OURS need something a server of tools
does not have, mostly a fixture with a fixed name; each has its reason here. What they sent and got
must be valid all the same, and one that passes though it is listed is a failure: the list is true.
"""
import glob
import json
import os
import re
import subprocess
import tempfile

import packages
from client import Http, Place, Tap

TOOL = "needs the fixture tool test_*: a sandbox has its own tools only"
RESOURCES = "no resources: files are read by tools"
PROMPTS = "no prompts"
ASKING = "no tool asks the client for anything (sampling, elicitation, roots)"
TASKS = "extension: no tasks"
NOT_OURS = {
    "logging-set-level": "no logging to the client",
    "completion-complete": "nothing to complete: no prompts, no resources",
    "tools-call-simple-text": TOOL,
    "tools-call-image": TOOL,
    "tools-call-audio": TOOL,
    "tools-call-embedded-resource": TOOL,
    "tools-call-mixed-content": TOOL,
    "tools-call-with-logging": TOOL,
    "tools-call-error": TOOL,
    "tools-call-with-progress": TOOL,
    "tools-call-sampling": ASKING,
    "tools-call-elicitation": ASKING,
    "elicitation-sep1034-defaults": ASKING,
    "elicitation-sep1330-enums": ASKING,
    "resources-list": RESOURCES,
    "resources-read-text": RESOURCES,
    "resources-read-binary": RESOURCES,
    "resources-templates-read": RESOURCES,
    "resources-subscribe": RESOURCES,
    "resources-unsubscribe": RESOURCES,
    "prompts-list": PROMPTS,
    "prompts-get-simple": PROMPTS,
    "prompts-get-with-args": PROMPTS,
    "prompts-get-embedded-resource": PROMPTS,
    "prompts-get-with-image": PROMPTS,
    "json-schema-2020-12": "needs the fixture tool json_schema_2020_12_tool",
    "server-stateless": "21 of 25 checks pass; 4 need the fixture tools test_missing_capability, "
                        "test_streaming_elicitation, test_logging_tool",
    "caching": "4 of 7 checks pass; 3 ask for prompts and resources",
    "http-custom-header-server-validation": "no tool asks for headers of its own",
    "input-required-result-basic-elicitation": ASKING,
    "input-required-result-basic-sampling": ASKING,
    "input-required-result-basic-list-roots": ASKING,
    "input-required-result-request-state": ASKING,
    "input-required-result-multiple-input-requests": ASKING,
    "input-required-result-multi-round": ASKING,
    "input-required-result-non-tool-request": ASKING,
    "input-required-result-result-type": ASKING,
    "input-required-result-tampered-state": ASKING,
    "input-required-result-capability-check": ASKING,
    "tasks-lifecycle": TASKS,
    "tasks-capability-negotiation": TASKS,
    "tasks-wire-fields": TASKS,
    "tasks-request-state-removal": TASKS,
    "tasks-mrtr-input": TASKS,
    "tasks-request-headers": TASKS,
    "tasks-dispatch-and-envelope": TASKS,
    "tasks-required-task-error": TASKS,
    "tasks-mrtr-composition": TASKS,
}
# Of scenarios that are listed for a part only: the checks that may fail.
PARTLY = {
    "server-stateless": {"sep-2575-server-rejects-undeclared-capability",
                         "sep-2575-missing-capability-http-400",
                         "sep-2575-http-server-no-independent-requests-on-stream",
                         "sep-2575-server-no-log-without-loglevel"},
    "caching": {"sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints",
                "sep-2549-resources-templates-list-caching-hints"},
}

tap = Tap()


def judge(revision, scenario, checks):
    failed = {c["id"]: c.get("errorMessage") for c in checks if c["status"] == "FAILURE"}
    name = f"{revision} {scenario}"
    if scenario not in NOT_OURS:
        tap.ok(not failed, f"{name}: {len(checks)} checks", failed)
        return
    bad = failed.keys() - PARTLY.get(scenario, failed.keys()) | {
        i for i in failed if "wire-schema" in i}
    tap.ok(failed and not bad, f"{name}: not ours: {NOT_OURS[scenario]}",
           {i: failed.get(i) for i in bad} or "it passes: take it off the list")


def run(revision, node, url):
    suite = os.path.join(packages.DIR, "node_modules/@modelcontextprotocol/conformance/dist/index.js")
    with tempfile.TemporaryDirectory() as out:
        p = subprocess.run([node, suite, "server", "--url", url, "--requirements", revision, "-o", out],
                           capture_output=True, text=True, timeout=240, check=False)
        found = sorted(glob.glob(os.path.join(out, "**/checks.json"), recursive=True))
        tap.ok(len(found) > 20, f"{revision}: {len(found)} scenarios ran", p.stdout[-2000:] + p.stderr[-2000:])
        for path in found:
            scenario = os.path.basename(os.path.dirname(path))
            # server-NAME-2026-11-15T14-48-56-976Z
            scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[-\dZ]*$", "", scenario)
            with open(path, encoding="utf-8") as f:
                judge(revision, scenario, json.load(f))


def main():
    why = packages.missing("@modelcontextprotocol/conformance")
    node = None if why else packages.node(22)
    if not node:
        tap.skip("conformance", why or "there is no Node 22 or newer")
        tap.end()
    place = Place()
    server = Http(place)
    here = os.path.dirname(os.path.abspath(__file__))
    proxy = subprocess.Popen([node, os.path.join(here, "proxy.mjs"), f"http://127.0.0.1:{server.port}",
                              server.file], stdout=subprocess.PIPE, text=True)
    try:
        port = int(proxy.stdout.readline())
        for revision in ("2025-11-25", "2026-07-28"):
            run(revision, node, f"http://localhost:{port}/mcp")
    finally:
        proxy.terminate()
        proxy.wait()
        proxy.stdout.close()
        server.end()
        place.remove()
    tap.end()


main()

#!/usr/bin/env python3
"""example.py: an agent that repairs a program, with a scripted model in place of a real one.

The agent works on a copy-on-write view of the project, in a jail without a network: the project
changes only when its diff is committed. Needs no account and no network.
"""
from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import caisson

PROJECT = {
    "add.py": "def add(a, b):\n    return a - b\n",
    "test_add.py": "import unittest\nfrom add import add\n\n\nclass Test(unittest.TestCase):\n"
                   "    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n",
}
TESTS = ["python3", "-B", "-m", "unittest", "-q"]

# What the model answers, turn by turn: a tool and its arguments.
SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("read", {"path": "add.py"}),
    ("exec", {"argv": TESTS}),
    ("exec", {"argv": ["python3", "-c", "import urllib.request as u; u.urlopen('http://pypi.org')"]}),
    ("edit", {"path": "add.py", "edits": [{"old_string": "a - b", "new_string": "a + b"}]}),
    ("exec", {"argv": TESTS}),
]


def call(sandbox: caisson.Sandbox, tool: str, arguments: dict[str, Any]) -> str:
    """Runs one tool. What the model must know goes into the answer, denials included."""
    try:
        if tool == "read":
            return sandbox.read(arguments["path"], numbers=True).content
        if tool == "edit":
            done = sandbox.edit(arguments["path"], arguments["edits"])
            return f"{done.occurrences} replaced"
        result = sandbox.exec(arguments["argv"], timeout_ms=60_000)
    except caisson.Error as error:
        return f"error: {error}"
    lines = [result.output.strip().splitlines()[-1] if result.output else "",
             f"exit code {result.exit_code}"]
    lines += [f"denied: {d.op} {d.target} (hint: {d.hint})" for d in result.denials]
    return "\n".join(lines)


def agent(sandbox: caisson.Sandbox, show: Callable[[str], None]) -> None:
    for tool, arguments in SCRIPT:
        show(f"> {tool} {arguments}")
        show(call(sandbox, tool, arguments))


def main() -> None:
    with tempfile.TemporaryDirectory() as dir:
        project = pathlib.Path(dir)
        for name, text in PROJECT.items():
            (project / name).write_text(text)
        with caisson.Sandbox(backend="jail", workspace=project, cow=True) as sandbox:
            agent(sandbox, print)
            diff = sandbox.diff(patch=True)
            print("> diff", *(f"{change.kind} {change.path}" for change in diff.changes))
            print((diff.patch or b"").decode())
            assert "a - b" in (project / "add.py").read_text(), "the project is as it was"
            commit = sandbox.commit()
            print(f"> commit: {commit.applied} applied")
        assert "a + b" in (project / "add.py").read_text()


if __name__ == "__main__":
    main()

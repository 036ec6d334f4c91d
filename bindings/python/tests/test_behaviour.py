"""test_behaviour.py: the cases of bindings/behaviour.json, with Sandbox and with AsyncSandbox."""
import asyncio
import json
import pathlib
import shutil
import tempfile
import unittest

import caisson
from support import REPOSITORY, TOP, need_jail

CASES = json.loads((REPOSITORY / "bindings/behaviour.json").read_text())["cases"]
RENAMED = {"from": "from_"}


def plain(value):
    """A result as `want` has it: bytes as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def member(result, name):
    if name == "data" and isinstance(result, bytes):
        return result.decode("utf-8", "replace")
    if name == "items" and isinstance(result, list):
        return result
    return plain(getattr(result, name))


def mismatch(got, want, where):
    """The first difference, or None."""
    if isinstance(want, dict):
        for name, value in want.items():
            if name.endswith("_like"):
                text = member(got, name.removesuffix("_like"))
                if value not in (text or ""):
                    return f"{where}.{name}: {text!r} does not contain {value!r}"
                continue
            found = mismatch(member(got, name), value, f"{where}.{name}")
            if found:
                return found
        return None
    if isinstance(want, list):
        if len(got) != len(want):
            return f"{where}: {len(got)} elements, not {len(want)}: {got!r}"
        for i, (g, w) in enumerate(zip(got, want)):
            found = mismatch(g, w, f"{where}[{i}]")
            if found:
                return found
        return None
    return None if got == want else f"{where}: {got!r}, not {want!r}"


class Driver:
    """Runs the steps of one case. A call of the package goes through `do`."""

    def __init__(self, test, do):
        self.test, self.do, self.sb, self.process = test, do, None, None

    async def step(self, step):
        step = dict(step)
        verb, want, error = step.pop("verb"), step.pop("want", {}), step.pop("error", None)
        args = {RENAMED.get(name, name): value for name, value in step.items()}
        target = self.sb
        if verb.startswith("process_"):
            target, verb = self.process, verb.removeprefix("process_")
            args = {{"data": "content"}.get(name, name): v for name, v in args.items()}
        try:
            result = await self.do(getattr(target, verb), **args)
        except caisson.Error as failure:
            self.test.assertEqual(failure.code, error, f"{verb}: {failure}")
            return
        self.test.assertIsNone(error, f"{verb} succeeded, but must be {error}")
        self.test.assertIsNone(mismatch(result, want, verb))
        if verb.startswith("start"):
            self.process = result

    async def run(self, case, backend, dir):
        options = {"backend": backend, "workspace": str(dir), **case.get("options", {})}
        try:
            self.sb = await self.open(options)
        except caisson.Error as failure:
            self.test.assertEqual(failure.code, case.get("open_error"), str(failure))
            return
        try:
            self.test.assertNotIn("open_error", case)
            for step in case["steps"]:
                await self.step(step)
        finally:
            await self.do(self.sb.close)


class Sync(Driver):
    def __init__(self, test):
        async def do(function, **args):
            return function(**args)
        super().__init__(test, do)

    async def open(self, options):
        return caisson.Sandbox(**options)


class Async(Driver):
    def __init__(self, test):
        async def do(function, **args):
            return await function(**args)
        super().__init__(test, do)

    async def open(self, options):
        return await caisson.AsyncSandbox(**options)


class Behaviour(unittest.TestCase):
    """Filled below with one test for each case, backend and class."""


def add(case, backend, driver):
    def test(self):
        if backend == "jail":
            need_jail()
        dir = pathlib.Path(tempfile.mkdtemp(dir=TOP))
        self.addCleanup(shutil.rmtree, dir, True)
        for name, content in case.get("files", {}).items():
            (dir / name).parent.mkdir(parents=True, exist_ok=True)
            (dir / name).write_text(content)
        asyncio.run(driver(self).run(case, backend, dir))

    name = "".join(c if c.isalnum() else "_" for c in case["name"])
    setattr(Behaviour, f"test_{name}_{backend}_{driver.__name__.lower()}", test)


for one in CASES:
    for one_backend in one.get("backends", ["local", "jail"]):
        for one_driver in (Sync, Async):
            add(one, one_backend, one_driver)

if __name__ == "__main__":
    unittest.main()

"""support.py: what the tests share. A test has a private state directory and workspaces of its
own below $CAISSON_TEST_DIR, which the script `test` makes and removes."""
import functools
import os
import pathlib
import shutil
import tempfile
import unittest

import caisson

TOP = pathlib.Path(os.environ["CAISSON_TEST_DIR"])
REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


@functools.cache
def jail_problem():
    """Why there is no jail on this host; None: there is one."""
    with tempfile.TemporaryDirectory(dir=TOP) as dir:
        try:
            with caisson.Sandbox(backend="jail", workspace=dir) as sb:
                sb.exec(["true"])
        except caisson.Error as error:
            return str(error)
    return None


def need_jail():
    problem = jail_problem()
    if problem and os.environ.get("CSN_MUST_WORK") == "1":
        raise AssertionError(f"no jail: {problem}")
    if problem:
        raise unittest.SkipTest(f"no jail: {problem}")


class Case(unittest.TestCase):
    """A test with a workspace. `sb` is a local sandbox on it."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(dir=TOP))
        self.addCleanup(shutil.rmtree, self.dir, True)

    def open(self, backend="local", **options):
        """A sandbox on the workspace, closed at the end of the test."""
        if backend == "jail":
            need_jail()
        sb = caisson.Sandbox(backend=backend, workspace=self.dir, **options)
        self.addCleanup(sb.close)
        return sb

    @functools.cached_property
    def sb(self):
        return self.open()

    def assertCode(self, code, function, *args, **kwargs):
        """The call fails with the code; returns the error."""
        with self.assertRaises(caisson.Error) as caught:
            function(*args, **kwargs)
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        return caught.exception


def is_alive(pid):
    """A process runs: it exists and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def marked(mark):
    """The processes of this host whose command line has the mark."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (entry / "cmdline").read_bytes() and is_alive(entry.name):
                found.append(int(entry.name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


def until(condition):
    """Waits for a condition that must come true; the runner has the only time limit."""
    import time
    while not condition():
        time.sleep(0.01)

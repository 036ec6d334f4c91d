"""test_lifecycle.py: handles, processes that fork, records, errors, and backends in Python."""
import gc
import json
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import unittest
import warnings

import caisson
from support import Case, TOP, is_alive, marked, need_jail, until


class Handles(Case):
    def test_a_closed_handle_is_refused(self):
        sb = self.open()
        process = sb.start(["sleep", "600"])
        sb.close()
        sb.close()
        self.assertCode("gone", sb.exec, ["true"])
        self.assertCode("gone", process.wait)
        process.close()

    def test_a_forgotten_sandbox_is_closed(self):
        sb = caisson.Sandbox(backend="local", workspace=self.dir)
        pid = sb.info().keeper_pid
        with self.assertWarns(ResourceWarning):
            del sb
            gc.collect()
        until(lambda: not is_alive(pid))

    def test_a_process_keeps_its_sandbox(self):
        process = caisson.Sandbox(backend="local", workspace=self.dir).start_sh("exit 4")
        gc.collect()
        self.assertEqual(process.wait().exit_code, 4)
        process._sandbox.close()

    def test_a_sandbox_is_not_pickled(self):
        with self.assertRaisesRegex(TypeError, "Sandbox.connect"):
            pickle.dumps(self.sb)

    def test_options_may_be_paths_and_tuples(self):
        other = self.dir / "other"
        other.mkdir()
        sb = self.open(read=(other,), env={"A": "1"}, timeout="20s", name=None)
        self.assertEqual(sb.sh("echo $A").stdout, "1\n")
        self.assertIn(str(other), sb.info().read_dirs)

    def test_a_wrong_option_is_named(self):
        self.assertIn("no_such", str(self.assertCode("invalid", caisson.Sandbox, no_such=1)))
        with self.assertRaisesRegex(TypeError, "option cannot be a object"):
            caisson.Sandbox(workspace=object())

    def test_info_and_id(self):
        info = self.sb.info()
        self.assertRegex(self.sb.id, r"^local-\d+-[a-z0-9]+$")
        self.assertEqual((info.id, info.backend, info.workspace, info.detached, info.name),
                         (self.sb.id, "local", str(self.dir), False, None))
        self.assertIn("exec", info.capabilities)

    def test_detached_connect_list_destroy(self):
        sb = self.open(detached=True, name="py-test")
        with caisson.Sandbox.connect("py-test") as again:
            self.assertEqual(again.id, sb.id)
            again.write("f", "x")
        sb.close()
        (entry,) = [s for s in caisson.sandboxes() if s.id == sb.id]
        self.assertEqual((entry.name, entry.state), ("py-test", "running"))
        caisson.destroy_id("py-test")
        caisson.destroy_id(sb.id, on_denial=print)
        self.assertNotIn(sb.id, [s.id for s in caisson.sandboxes()])
        self.assertCode("not_found", caisson.destroy_id, "py-test")

    def test_extend_pause_resume_reset(self):
        sb = self.open("jail", lifetime="1h")
        before = sb.info().expires_ms
        sb.extend(7_200_000)
        self.assertGreater(sb.info().expires_ms, before)
        self.assertCode("unsupported", sb.reset)
        self.assertCode("unsupported", sb.pause)
        self.assertCode("unsupported", sb.resume)
        self.assertEqual(sb.exec(["true"]).exit_code, 0)

    def test_cleanup(self):
        self.sb.write("f", "x")
        self.assertCode("denied", self.sb.cleanup)
        self.sb.cleanup(force=True)
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_network_of_a_jail(self):
        sb = self.open("jail", network={"allow": ["a.example"]})
        self.assertEqual(sb.network().net_allow, ["a.example"])
        sb.network_set(net_allow=["b.example:443"], net_deny=["c.b.example"])
        got = sb.network()
        self.assertEqual((got.net_allow, got.net_deny), (["b.example:443"], ["c.b.example"]))
        told = []
        result = sb.exec(["python3", "-c", "import socket; socket.getaddrinfo('d.example', 80)"],
                         on_denial=told.append)
        self.assertTrue(result.failed)
        self.assertEqual([d.target for d in told], [d.target for d in result.denials])
        self.assertTrue(any("d.example" in (d.target or "") for d in told))
        self.assertTrue(any(e.verdict == "deny" for e in sb.network().events))
        self.assertFalse(sb.would_allow("net", "d.example").allowed)
        self.assertTrue(sb.would_allow("net", "b.example:443").allowed)

    def test_the_end_reports_denials(self):
        sb, told = self.open("jail"), []
        sb.on_denial(told.append)
        sb.write("a", "x")
        process = sb.start_sh(
            "mkdir -p .git/hooks .git/objects .git/refs; echo 'ref: refs/heads/m' >.git/HEAD; "
            "echo '#!/bin/sh' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; sleep 600")
        until(lambda: (self.dir / ".git/hooks/pre-commit").exists())
        sb.destroy()
        self.assertTrue(any("pre-commit" in (d.target or "") for d in told), told)
        process.close()
        entry = [e for e in caisson.aside_list() if e.sandbox == sb.id][-1]
        self.assertIn("pre-commit", entry.path)
        caisson.aside_restore(entry.id, replace=True)
        self.assertTrue((self.dir / ".git/hooks/pre-commit").exists())
        self.assertCode("not_found", caisson.aside_remove, entry.id)


class Records(Case):
    def test_audit(self):
        sb = self.open()
        sb.exec(["true"])
        sb.close()
        lines = caisson.audit_read(sb.id)
        self.assertIn("exec", [json.loads(line)["op"] for line in lines])
        seen = []
        self.assertEqual(caisson.audit_read(sb.id, seen.append), [])
        self.assertEqual(seen, lines)
        self.assertTrue(caisson.audit_verify(sb.id).ok)
        self.assertIn(sb.id, [log.id for log in caisson.audit_logs()])
        caisson.audit_remove(sb.id)
        self.assertNotIn(sb.id, [log.id for log in caisson.audit_logs()])

    def test_audit_at_a_path(self):
        log = TOP / f"log-{os.getpid()}"
        self.addCleanup(log.unlink)
        self.open(audit=log).exec(["true"])
        self.assertTrue(caisson.audit_verify_file(log).ok)
        self.assertTrue(caisson.audit_read_file(log))
        text = log.read_text().replace('"true"', '"evil"')
        log.write_text(text)
        report = caisson.audit_verify_file(log)
        self.assertFalse(report.ok)
        self.assertIsInstance(report.reason, str)

    def test_a_line_function_that_fails(self):
        self.sb.exec(["true"])

        def fail(line):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            caisson.audit_read(self.sb.id, fail)

    def test_doctor_and_version(self):
        need_jail()
        got = caisson.doctor(self.dir)
        self.assertTrue(got.items)
        self.assertEqual(got.rung, "full")
        self.assertRegex(caisson.version(), r"^\d+\.\d+\.\d+")

    def test_errors_can_be_pickled(self):
        error = self.assertCode("outside", self.sb.read, "../x")
        same = pickle.loads(pickle.dumps(error))
        self.assertIsInstance(same, caisson.Denied)
        self.assertEqual((same.code, same.message, same.denial),
                         (error.code, error.message, error.denial))


def in_child(function):
    """What function() returns in a forked child."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads
        pid = os.fork()
    if pid == 0:
        try:
            os.write(writer, json.dumps(function()).encode())
        except BaseException as error:
            os.write(writer, json.dumps(repr(error)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        value = json.loads(file.read())
    os.waitpid(pid, 0)
    return value


def work(dir):
    """In a process of multiprocessing."""
    with caisson.Sandbox(backend="local", workspace=dir) as sb:
        return sb.exec(["echo", "from a worker"])


class Forks(Case):
    def code(self, function, *args):
        try:
            function(*args)
        except caisson.Error as error:
            return error.code, error.message
        return "no error"

    def test_a_handle_of_the_parent_is_refused(self):
        sb = self.open()
        process = sb.start(["sleep", "600"])
        cancel = caisson.Cancel()

        def child():
            found = [self.code(sb.exec, ["true"]), self.code(process.wait),
                     self.code(cancel.fire), self.code(sb.destroy)]
            process.close()
            sb.close()
            return found

        for code, message in in_child(child):
            self.assertEqual(code, "invalid")
            self.assertIn("before fork()", message)
        # Neither the refused calls nor close in the child ended anything here.
        self.assertEqual(sb.exec(["echo", "alive"]).stdout, "alive\n")
        self.assertEqual(sb.processes()[0].state, "running")

    def test_garbage_in_the_child_ends_nothing(self):
        holder = [self.open()]

        def child():
            self._cleanups.clear()
            holder.clear()
            gc.collect()

        sb = holder[0]
        in_child(lambda: (child(), None)[1])
        self.assertEqual(sb.exec(["true"]).exit_code, 0)

    def test_the_child_opens_its_own(self):
        self.sb.exec(["true"])
        dir = str(self.dir)

        def child():
            with caisson.Sandbox(backend="local", workspace=dir) as sb:
                with sb.stream(["echo", "child"]) as stream:
                    return b"".join(c.data for c in stream).decode()

        self.assertEqual(in_child(child), "child\n")
        self.assertEqual(self.sb.exec(["true"]).exit_code, 0)

    def test_the_child_has_asyncio(self):
        import asyncio
        dir = str(self.dir)

        async def use():
            async with caisson.AsyncSandbox(backend="local", workspace=dir) as sb:
                return (await sb.exec(["echo", "child"])).stdout

        asyncio.run(use())
        self.assertEqual(in_child(lambda: asyncio.run(use())), "child\n")

    def test_multiprocessing(self):
        self.sb.exec(["true"])
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method), warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                with multiprocessing.get_context(method).Pool(2) as pool:
                    results = pool.map(work, [str(self.dir)] * 4)
                self.assertEqual([r.stdout for r in results], ["from a worker\n"] * 4)
                self.assertTrue(all(r.layers for r in results))


class Killed(Case):
    def test_kill_9_leaves_nothing(self):
        for backend in ("local", "jail"):
            with self.subTest(backend):
                if backend == "jail":
                    need_jail()
                mark = f"88{os.getpid()}{len(backend)}"
                script = (
                    "import caisson, threading, time\n"
                    f"sb = caisson.Sandbox(backend={backend!r}, workspace={str(self.dir)!r})\n"
                    f"sb.start(['sleep', '{mark}'])\n"
                    f"sb.sh('setsid sleep {mark} & echo', on_output=lambda *_: None)\n"
                    f"sb.sh('echo; sleep {mark}; true',\n"
                    "      on_output=lambda *_: print(sb.info().keeper_pid, flush=True))\n")
                with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                                      text=True) as child:
                    keeper = int(child.stdout.readline())
                    self.assertTrue(is_alive(keeper))
                    until(lambda: len(marked(f"sleep\0{mark}")) == 3)
                    child.send_signal(signal.SIGKILL)
                until(lambda: not is_alive(keeper) and not marked(f"sleep\0{mark}"))

    def test_the_end_of_the_program_closes(self):
        script = ("import caisson\n"
                  f"sb = caisson.Sandbox(backend='local', workspace={str(self.dir)!r})\n"
                  "print(sb.info().keeper_pid)")
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True,
                              text=True)
        until(lambda: not is_alive(int(done.stdout)))


class HereBackend:
    """Runs commands on this machine."""

    def exec(self, request):
        if request.argv[0] == "fail":
            raise caisson.Error("unavailable", "the backend is away")
        if request.argv[0] == "number":
            request.write(b"out")
            request.write(b"err", "stderr")
            return 7
        return request.run(request.argv, cwd=request.cwd, env={**os.environ, **request.env})


class Backends(Case):
    @classmethod
    def setUpClass(cls):
        caisson.register_backend("here", HereBackend())

    def setUp(self):
        super().setUp()
        self.here = caisson.Sandbox(backend="here", workdir=self.dir)
        self.addCleanup(self.here.close)

    def test_a_name_is_taken_once(self):
        with self.assertRaises(caisson.Exists):
            caisson.register_backend("here", HereBackend())

    def test_commands(self):
        got = self.here.sh("cat; echo $A; pwd; exit 3", stdin="in ", env={"A": "1"})
        self.assertEqual((got.stdout, got.exit_code), (f"in 1\n{self.dir}\n", 3))
        self.assertEqual(self.here.sh("echo x >&2").stderr, "x\n")
        self.assertEqual(self.here.sh("kill -9 $$").signal, "SIGKILL")
        self.assertEqual(self.here.exec(["no-such-program"]).exit_code, 127)

    def test_timeout_and_cancel(self):
        self.assertTrue(self.here.sh("sleep 600", timeout_ms=50).timed_out)
        cancel = caisson.Cancel()
        got = self.here.sh("echo; sleep 600", cancel=cancel, on_output=lambda *_: cancel.fire())
        self.assertEqual(got.killed_by, "cancel")

    def test_file_calls_are_derived(self):
        self.here.write("d/f", b"one\n\xff\ntwo\n")
        self.assertEqual(self.here.read_bytes("d/f"), b"one\n\xff\ntwo\n")
        self.assertEqual(self.here.read("d/f", limit=1).content, "one\n")
        self.here.edit("d/f", [{"old_string": "two", "new_string": "2"}])
        self.assertEqual([m.line for m in self.here.grep("2")], [3])
        self.assertEqual([f.path for f in self.here.list("d")], ["f"])
        self.assertEqual([f.path for f in self.here.glob("**/f")], ["d/f"])
        self.here.delete("d", recursive=True)
        self.assertCode("not_found", self.here.stat, "d")
        self.assertEqual(list(self.dir.iterdir()), [])


class BackendErrors(unittest.TestCase):
    def test_an_error_of_the_backend_is_one_of_the_call(self):
        class Broken:
            def exec(self, request):
                raise caisson.Error("unavailable", "the backend is away")

        class Bug:
            def exec(self, request):
                raise ZeroDivisionError("a bug")

        for name, backend, code, text in (("broken", Broken(), "unavailable", "is away"),
                                          ("bug", Bug(), "internal", "ZeroDivisionError: a bug")):
            caisson.register_backend(name, backend)
            with self.assertRaises(caisson.Error) as caught:
                with caisson.Sandbox(backend=name, workdir="/") as sb:
                    sb.exec(["true"])
            self.assertEqual(caught.exception.code, code)
            self.assertIn(text, str(caught.exception))


class Log(Case):
    def test_debug_lines(self):
        script = ("import caisson\nlines = []\ncaisson.set_log(lines.append)\n"
                  f"with caisson.Sandbox(backend='local', workspace={str(self.dir)!r}) as sb:\n"
                  "    sb.write('f', 'x')\n    caisson.set_log(None)\n    sb.write('g', 'x')\n"
                  "print([line.split()[0] for line in lines])")
        done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, b"['write']\n")


class Command(unittest.TestCase):
    def test_the_package_has_the_command(self):
        done = subprocess.run([sys.executable, "-m", "caisson", "--version"],
                              stdout=subprocess.PIPE, check=True, text=True)
        self.assertEqual(done.stdout, f"caisson {caisson.__version__}\n")


if __name__ == "__main__":
    unittest.main()

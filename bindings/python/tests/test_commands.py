"""test_commands.py: commands, their output, and what ends them."""
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import caisson
from support import Case, is_alive, marked, until


class Exec(Case):
    def test_words_may_be_bytes_and_paths(self):
        got = self.sb.exec(["printf", b"%s|", self.dir, b"\xff\xfe", "\udcff"])
        self.assertEqual(got.stdout_bytes, b"%s|\xff\xfe|\xff|" % os.fsencode(self.dir))
        self.assertEqual(got.stdout, f"{self.dir}|\ufffd\ufffd|\ufffd|")

    def test_a_null_byte_is_refused(self):
        for argv in (["echo", "a\0b"], ["echo", b"a\0b"]):
            with self.assertRaisesRegex(ValueError, "null byte"):
                self.sb.exec(argv)
        with self.assertRaisesRegex(ValueError, "null byte"):
            self.sb.read("a\0b")

    def test_one_string_is_not_a_list(self):
        with self.assertRaises(TypeError):
            self.sb.exec("echo")

    def test_an_unknown_word_is_refused(self):
        with self.assertRaisesRegex(ValueError, "keep: 'middle'"):
            self.sb.sh("true", keep="middle")
        with self.assertRaises(TypeError):
            self.sb.exec(["true"], no_such_option=1)

    def test_input_is_bytes_text_empty_or_a_descriptor(self):
        self.assertEqual(self.sb.exec(["cat"], stdin=b"\0\xff").stdout_bytes, b"\0\xff")
        self.assertEqual(self.sb.exec(["cat"], stdin="\u00e9").stdout, "\u00e9")
        self.assertEqual(self.sb.exec(["cat"], stdin="").stdout, "")
        self.assertEqual(self.sb.exec(["cat"], stdin=memoryview(b"abc")[1:]).stdout, "bc")
        with tempfile.TemporaryFile() as file:
            file.write(b"from a file")
            file.seek(0)
            self.assertEqual(self.sb.exec(["cat"], stdin_fd=file.fileno()).stdout, "from a file")

    def test_a_terminal(self):
        got = self.sb.sh("test -t 1 && stty size", pty=True, rows=11, cols=22)
        self.assertEqual(got.stdout.strip(), "11 22")

    def test_counts_and_halves_of_long_output(self):
        got = self.sb.sh("printf 0123456789", output_max=4, keep="both")
        self.assertEqual((got.stdout, got.stdout_total, got.stdout_head), ("0189", 10, 2))

    def test_exit_code_is_none_after_a_signal(self):
        got = self.sb.sh("kill -KILL $$")
        self.assertIsNone(got.exit_code)
        self.assertEqual(got.signal, "SIGKILL")

    def test_a_result_can_be_pickled(self):
        got = self.sb.exec(["echo", "x"])
        same = pickle.loads(pickle.dumps(got))
        self.assertEqual(same, got)
        self.assertEqual(same.layers, got.layers)
        self.assertIn("files", [layer.name for layer in got.layers])

    def test_layers_outlive_the_sandbox(self):
        with caisson.Sandbox(backend="local", workspace=self.dir) as sb:
            small, large = sb.exec(["true"]), sb.sh("head -c 200000 /dev/zero")
        self.assertEqual([layer.name for layer in small.layers],
                         [layer.name for layer in large.layers])
        self.assertTrue(small.layers)


class Output(Case):
    def test_on_output_gets_everything_in_order(self):
        got = []
        result = self.sb.sh("for i in 1 2 3; do echo $i; echo e$i >&2; sleep 0.01; done",
                            output_max=1, on_output=lambda stream, data: got.append((stream, data)))
        self.assertEqual(b"".join(d for s, d in got if s == "stdout"), b"1\n2\n3\n")
        self.assertEqual(b"".join(d for s, d in got if s == "stderr"), b"e1\ne2\ne3\n")
        self.assertTrue(result.truncated)

    def test_an_exception_ends_the_command_and_is_raised(self):
        def fail(stream, data):
            raise KeyError(data)

        with self.assertRaises(KeyError) as caught:
            self.sb.sh("echo first; sleep 600", on_output=fail)
        self.assertEqual(caught.exception.args, (b"first\n",))

    def test_stream(self):
        with self.sb.stream_sh("echo a; echo b >&2; exit 3", merge=True) as stream:
            text = "".join(chunk.text for chunk in stream)
            self.assertEqual(text, "a\nb\n")
            self.assertEqual(stream.result.exit_code, 3)

    def test_the_command_waits_for_the_consumer(self):
        # 20 MB do not fit into pipes: the command ends only when the consumer has read them.
        with self.sb.stream(["sh", "-c", "head -c 20000000 /dev/zero; : >done"]) as stream:
            first = next(stream)
            self.assertFalse((self.dir / "done").exists())
            total = len(first.data) + sum(len(chunk.data) for chunk in stream)
            self.assertEqual(total, 20_000_000)
            self.assertEqual(stream.result.exit_code, 0)
        self.assertTrue((self.dir / "done").exists())

    def test_closing_a_stream_ends_the_command(self):
        with self.sb.stream_sh("echo $$; exec sleep 600") as stream:
            pid = int(next(stream).data)
            self.assertTrue(is_alive(pid))
        self.assertFalse(is_alive(pid))
        self.assertEqual(list(stream), [])
        with self.assertRaises(ValueError):
            stream.result

    def test_dropping_a_stream_ends_the_command(self):
        stream = self.sb.stream_sh("echo $$; yes")
        pid = int(next(stream).data.split()[0])
        del stream
        until(lambda: not is_alive(pid))

    def test_a_stream_raises_what_the_call_fails_with(self):
        sb = self.open(commands=["echo"])
        with self.assertRaises(caisson.Denied):
            list(sb.stream(["cat"]))


class Stop(Case):
    def test_cancel_from_another_thread(self):
        cancel = caisson.Cancel()
        result = self.sb.sh("echo ready; sleep 600", cancel=cancel,
                            on_output=lambda *_: cancel.fire())
        self.assertEqual((result.killed_by, result.interrupted), ("cancel", True))
        self.assertEqual(self.sb.sh("true", cancel=cancel).killed_by, "cancel")

    def test_close_ends_commands_of_other_threads(self):
        for options in ({}, {"detached": True}):
            with self.subTest(options):
                sb = self.open(**options)
                self.addCleanup(caisson.destroy_id, sb.id)
                started, ended = threading.Event(), []
                thread = threading.Thread(target=lambda: ended.append(
                    sb.sh("echo; sleep 600", on_output=lambda *_: started.set())))
                thread.start()
                started.wait()
                sb.close()
                thread.join()
                self.assertEqual(ended[0].killed_by, "cancel")

    def test_close_ends_waits_of_other_threads(self):
        sb = self.open(detached=True)
        self.addCleanup(caisson.destroy_id, sb.id)
        process, errors = sb.start(["sleep", "600"]), []

        def wait():
            try:
                process.wait()
            except caisson.Error as error:
                errors.append(error.code)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: process._handle._users > 0)
        sb.close()
        thread.join()
        self.assertEqual(errors, ["cancelled"])

    def test_ctrl_c_ends_the_command(self):
        mark = f"77{os.getpid()}"
        script = ("import caisson, sys\n"
                  f"with caisson.Sandbox(backend='local', workspace={str(self.dir)!r}) as sb:\n"
                  f"    sb.sh('echo; sleep {mark}; true', timeout_ms=caisson.NO_LIMIT,\n"
                  "          on_output=lambda *_: print('ready', flush=True))\n")
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        with child:
            self.assertEqual(child.stdout.readline(), "ready\n")
            child.send_signal(signal.SIGINT)
            errors = child.communicate()[1]
        self.assertTrue(errors.rstrip().endswith("KeyboardInterrupt"), errors)
        until(lambda: not marked(f"sleep\0{mark}"))

    def test_many_threads_use_one_sandbox(self):
        results = []
        threads = [threading.Thread(target=lambda i=i: results.append(
            (str(i), self.sb.exec(["echo", str(i)]).stdout.strip()))) for i in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), 50)
        self.assertTrue(all(asked == got for asked, got in results))

    def test_a_command_does_not_hold_the_interpreter(self):
        # The command ends only after another thread of this program has run.
        thread = threading.Thread(target=lambda: self.sb.write("go", ""))
        got = self.sb.sh("echo; while ! test -e go; do sleep 0.01; done; echo gone",
                         on_output=lambda *_: thread.ident or thread.start())
        self.assertEqual(got.stdout, "\ngone\n")
        thread.join()


class Processes(Case):
    def test_a_process_from_start_to_end(self):
        with self.sb.start_sh("echo ready; read x; echo got $x; exit 5", stdin=True) as process:
            self.sb.wait_log("ready")
            self.assertIn(process.pid, [p.pid for p in self.sb.processes()])
            self.assertCode("timeout", process.wait, 10)
            process.write("it\n")
            ended = process.wait()
            self.assertEqual((ended.state, ended.exit_code, ended.denials), ("exited", 5, []))
            chunk = process.logs()
            self.assertEqual((chunk.text, chunk.end), ("ready\ngot it\n", True))
            self.assertEqual(process.logs(offset=6).data, b"got it\n")

    def test_timeouts_are_also_the_languages_own(self):
        process = self.sb.start(["sleep", "600"])
        with self.assertRaises(TimeoutError):
            process.wait(10)
        chunk = process.logs(wait_ms=10)
        self.assertEqual((chunk.data, chunk.end), (b"", False))

    def test_signal_and_close_stdin(self):
        process = self.sb.start(["sleep", "600"])
        process.signal(signal.SIGKILL)
        self.assertEqual(process.wait().signal, "SIGKILL")
        reader = self.sb.start(["cat"], stdin=True)
        reader.write(b"x")
        reader.close_stdin()
        self.assertEqual(reader.wait().exit_code, 0)
        self.assertEqual(reader.logs().data, b"x")

    def test_resize(self):
        process = self.sb.start_sh("read x; stty size", pty=True, rows=5, cols=6)
        process.resize(33, 44)
        process.write("\n")
        process.wait()
        self.assertIn("33 44", process.logs().text)

    def test_a_handle_by_number(self):
        pid = self.sb.start(["sleep", "600"]).pid
        again = self.sb.process(pid)
        self.assertEqual(again.pid, pid)
        again.signal(signal.SIGTERM)
        self.assertEqual(again.wait().signal, "SIGTERM")
        self.assertCode("not_found", self.sb.process, 999_999_999)

    def test_a_tied_process_ends_with_its_handle(self):
        with self.sb.start(["sleep", "600"], tied=True) as process:
            pid = process.pid
        until(lambda: self.sb.process(pid).wait().state == "exited")

    def test_wait_port(self):
        code = ("import socket, time\ns = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\n"
                "print(s.getsockname()[1], flush=True)\ntime.sleep(600)")
        process = self.sb.start([sys.executable, "-c", code])
        port = int(process.logs(wait_ms=60_000).data)
        self.sb.wait_port(port, 60_000)
        process.signal(signal.SIGKILL)
        process.wait()
        self.assertCode("timeout", self.sb.wait_port, port, 10)

    def test_a_wait_can_be_cancelled(self):
        cancel = caisson.Cancel()
        cancel.fire()
        self.assertCode("cancelled", self.sb.wait_log, "never", cancel=cancel)


if __name__ == "__main__":
    unittest.main()

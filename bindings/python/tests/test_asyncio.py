"""test_asyncio.py: AsyncSandbox: what it adds to the methods that it shares with Sandbox."""
import asyncio
import inspect
import threading
import unittest

import caisson
from support import Case, is_alive


class Async(Case):
    def run_with(self, use, **options):
        """Runs use(sandbox) on an event loop."""
        async def main():
            async with caisson.AsyncSandbox(backend="local", workspace=self.dir, **options) as sb:
                return await use(sb)

        return asyncio.run(main())

    def test_the_classes_have_the_same_methods(self):
        for sync, other in ((caisson.Sandbox, caisson.AsyncSandbox),
                            (caisson.Process, caisson.AsyncProcess),
                            (caisson.Watch, caisson.AsyncWatch)):
            for name, method in inspect.getmembers(sync):
                if name.startswith("_"):
                    continue
                self.assertTrue(hasattr(other, name), f"{other.__name__}.{name}")
                if not inspect.isfunction(method):
                    continue
                want = [p for p in inspect.signature(method).parameters if p != "cancel"]
                got = list(inspect.signature(getattr(other, name)).parameters)
                self.assertEqual(got, want, name)

    def test_await_opens(self):
        async def main():
            sb = await caisson.AsyncSandbox(backend="local", workspace=self.dir)
            try:
                return (await sb.exec(["echo", "x"])).stdout
            finally:
                await sb.close()

        self.assertEqual(asyncio.run(main()), "x\n")

    def test_a_sandbox_that_is_not_open_says_so(self):
        sb = caisson.AsyncSandbox(backend="local")
        error = self.assertCode("invalid", lambda: asyncio.run(sb.info()))
        self.assertIn("async with", error.hint)

    def test_many_commands_at_once(self):
        # All of them wait for each other: they must run at the same time.
        count = 200

        async def use(sb):
            line = ("echo >started.$N; "
                    f"while [ $(ls | grep -c started) -lt {count} ]; do sleep 0.2; done; echo $N")
            return await asyncio.gather(*(
                sb.sh(line, env={"N": str(i)}, timeout_ms=caisson.NO_LIMIT)
                for i in range(count)))

        results = self.run_with(use)
        self.assertEqual([r.stdout for r in results], [f"{i}\n" for i in range(count)])

    def test_the_event_loop_goes_on(self):
        async def use(sb):
            command = asyncio.create_task(
                sb.sh("while ! test -e go; do sleep 0.01; done; echo gone"))
            await sb.write("go", "")  # only possible if the loop is not blocked by the command
            return (await command).stdout

        self.assertEqual(self.run_with(use), "gone\n")

    def test_cancelling_the_task_ends_the_command(self):
        async def use(sb):
            pid = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(sb.sh(
                "echo $$; exec sleep 600", on_output=lambda _, data: pid.set_result(int(data))))
            number = await pid
            self.assertTrue(is_alive(number))
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertFalse(is_alive(number))

        self.run_with(use)

    def test_a_timeout_of_asyncio_ends_the_command(self):
        async def use(sb):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(sb.exec(["sleep", "600"], timeout_ms=caisson.NO_LIMIT), 0.1)

        self.run_with(use)

    def test_waits_are_cancelled(self):
        async def use(sb):
            process = await sb.start(["sleep", "600"])
            watch = await sb.watch()
            waits = [process.wait(), process.logs(wait_ms=600_000), sb.wait_log("never"),
                     sb.wait_port(1), watch.next()]
            tasks = [asyncio.create_task(w) for w in waits]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            got = await asyncio.gather(*tasks, return_exceptions=True)
            self.assertTrue(all(isinstance(g, asyncio.CancelledError) for g in got), got)

        self.run_with(use)

    def test_a_sandbox_whose_opening_is_cancelled_is_closed(self):
        self.sb.exec(["true"])  # one can be opened here: else the wait below has no end
        closed = threading.Event()
        original = caisson.Sandbox.close

        def close(sb):
            original(sb)
            closed.set()

        async def main():
            task = asyncio.create_task(
                caisson.AsyncSandbox(backend="local", workspace=self.dir)._open())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        caisson.Sandbox.close = close
        try:
            asyncio.run(main())
            closed.wait()
        finally:
            caisson.Sandbox.close = original

    def test_errors(self):
        async def use(sb):
            with self.assertRaises(FileNotFoundError):
                await sb.read("none")
            with self.assertRaises(TypeError):
                await sb.exec(["true"], no_such=1)

        self.run_with(use)

    def test_a_callback_may_be_a_coroutine(self):
        async def use(sb):
            seen, thread = [], threading.get_ident()

            async def take(stream, data):
                await asyncio.sleep(0)
                self.assertEqual(threading.get_ident(), thread)
                seen.append(data)

            await sb.sh("echo 1; sleep 0.01; echo 2", on_output=take)
            return b"".join(seen)

        self.assertEqual(self.run_with(use), b"1\n2\n")

    def test_stream(self):
        async def use(sb):
            async with sb.stream_sh("echo a; echo b >&2; exit 3", merge=True) as stream:
                text = "".join([chunk.text async for chunk in stream])
                return text, (await stream.result()).exit_code

        self.assertEqual(self.run_with(use), ("a\nb\n", 3))

    def test_the_command_waits_for_the_consumer(self):
        async def use(sb):
            stream = sb.stream(["sh", "-c", "head -c 20000000 /dev/zero; : >done"])
            first = await stream.__anext__()
            early = (self.dir / "done").exists()
            total = len(first.data) + sum([len(chunk.data) async for chunk in stream])
            return early, total, (await stream.result()).exit_code

        self.assertEqual(self.run_with(use), (False, 20_000_000, 0))

    def test_leaving_a_stream_ends_the_command(self):
        async def use(sb):
            async with sb.stream_sh("echo $$; exec sleep 600") as stream:
                async for chunk in stream:
                    return int(chunk.data)

        self.assertFalse(is_alive(self.run_with(use)))

    def test_cancelling_the_reader_of_a_stream_ends_the_command(self):
        async def use(sb):
            stream = sb.stream_sh("echo $$; exec sleep 600")
            pid = int((await stream.__anext__()).data)
            task = asyncio.create_task(stream.__anext__())
            await asyncio.sleep(0)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            return pid

        self.assertFalse(is_alive(self.run_with(use)))

    def test_processes_and_watches(self):
        async def use(sb):
            async with await sb.start_sh("read x; echo $x", stdin=True) as process:
                await process.write("typed\n")
                ended = await process.wait()
                text = (await process.logs()).text
            async with await sb.watch() as watch:
                await sb.write("f", "x")
                async for event in watch:
                    return ended.exit_code, text, event.path

        got = self.run_with(use)
        self.assertEqual(got[:2], (0, "typed\n"))
        self.assertTrue(got[2])

    def test_a_watch_ends_with_the_sandbox(self):
        async def use(sb):
            watch = await sb.watch()

            async def collect():
                return [event async for event in watch]

            task = asyncio.create_task(collect())
            await sb.destroy()
            return await task

        self.assertEqual(self.run_with(use), [])

    def test_connect_and_functions(self):
        async def main():
            sb = await caisson.AsyncSandbox(backend="local", workspace=self.dir, detached=True)
            async with await caisson.AsyncSandbox.connect(sb.id) as again:
                await again.exec(["true"])
            ids = [s.id for s in await caisson.aio.sandboxes()]
            await sb.close()
            await caisson.aio.destroy_id(sb.id)
            return sb.id in ids, (await caisson.aio.audit_verify(sb.id)).ok

        self.assertEqual(asyncio.run(main()), (True, True))

    def test_two_loops_one_after_the_other(self):
        for _ in range(2):
            self.assertEqual(self.run_with(lambda sb: sb.exec(["true"])).exit_code, 0)


if __name__ == "__main__":
    unittest.main()

"""test_files.py: files, search, events, transfers and copy-on-write workspaces."""
import hashlib
import io
import os
import pathlib
import tarfile
import threading
import unittest

import caisson
from support import Case


class Content(Case):
    def test_paths_are_text_bytes_or_path_objects(self):
        for path in ("a", b"b", pathlib.PurePosixPath("d/c")):
            self.assertEqual(self.sb.write(path, "x").bytes, 1)
            self.assertEqual(self.sb.read_bytes(path), b"x")
        self.assertEqual([f.path for f in self.sb.list()], ["a", "b", "d"])

    def test_a_name_that_is_not_utf_8_comes_back(self):
        name = os.fsdecode(b"\xff.txt")
        self.sb.write(name, b"\xfe")
        self.assertEqual([f.path for f in self.sb.list(".")], [name])
        self.assertEqual(self.sb.glob("*")[0].path, name)
        self.assertEqual(os.listdir(os.fsencode(self.dir)), [b"\xff.txt"])
        got = self.sb.read(name)
        self.assertEqual((got.content_bytes, got.content), (b"\xfe", "\ufffd"))

    def test_read_fills_in_what_is_asked_for(self):
        self.sb.write("f", "1\n2\n")
        got = self.sb.read("f", hash=True, numbers=True)
        self.assertEqual(got.hash, hashlib.sha256(b"1\n2\n").hexdigest())
        self.assertEqual(got.content, "     1\t1\n     2\t2\n")
        self.assertIsNone(self.sb.read("f").hash)

    def test_an_image_is_bytes_with_a_type(self):
        png = b"\x89PNG\r\n\x1a\n" + bytes(100)
        self.sb.write("i.png", png)
        got = self.sb.read("i.png")
        self.assertEqual((got.is_image, got.mime_type, got.content_bytes),
                         (True, "image/png", png))
        self.assertFalse(self.sb.read("i.png", text=True).is_image)

    def test_empty_content(self):
        self.assertEqual(self.sb.write("e", b"").bytes, 0)
        self.assertEqual(self.sb.read_bytes("e"), b"")
        self.sb.write_many({"e2": ""})
        self.assertEqual(self.sb.read("e2").content, "")

    def test_errors_are_also_the_languages_own(self):
        with self.assertRaises(FileNotFoundError) as caught:
            self.sb.read("none")
        self.assertIsInstance(caught.exception, caisson.NotFound)
        self.assertEqual((caught.exception.code, caught.exception.op, caught.exception.path),
                         ("not_found", "read", "none"))
        self.assertIn("none", str(caught.exception))
        self.sb.write("f", "")
        with self.assertRaises(FileExistsError):
            self.sb.write("f", "", create=True)
        with self.assertRaises(PermissionError) as caught:
            self.sb.read("../x")
        self.assertEqual(caught.exception.code, "outside")
        self.assertEqual(caught.exception.denial.op, "read")

    def test_modes_and_hashes(self):
        done = self.sb.write("x", "1", mode=0o700)
        self.assertEqual((self.dir / "x").stat().st_mode & 0o777, 0o700)
        self.sb.write("x", "2", if_hash=done.hash)
        self.assertCode("conflict", self.sb.write, "x", "3", if_hash=done.hash)
        self.sb.write_many({"y": {"data": "1", "mode": 0o711}})
        self.assertEqual(self.sb.stat("y").mode & 0o777, 0o711)
        self.assertCode("conflict", self.sb.write_many,
                        {"z": "1", "x": {"data": "4", "if_hash": done.hash}})
        self.assertFalse((self.dir / "z").exists())

    def test_edit_of_bytes_and_to_nothing(self):
        self.sb.write("f", b"a\0b\xff")
        got = self.sb.edit("f", [{"old_string": b"\0b", "new_string": b""},
                                 {"old_string": b"\xff", "new_string": "\u00e9"}])
        self.assertEqual(got.occurrences, 2)
        self.assertEqual(self.sb.read_bytes("f"), b"a\xc3\xa9")

    def test_an_edit_needs_both_strings(self):
        self.sb.write("f", "a")
        with self.assertRaises(KeyError):
            self.sb.edit("f", [{"old_string": "a"}])

    def test_symlinks(self):
        self.sb.write("f", "x")
        (self.dir / "l").symlink_to("f")
        self.assertEqual(self.sb.stat("l").file_size, 1)
        link = self.sb.stat("l", nofollow=True)
        self.assertEqual((link.is_symlink, link.target), (True, "f"))
        with self.assertRaises(caisson.Error):
            self.sb.read("l", nofollow=True)


class Streams(Case):
    def test_write_from_a_file_pieces_and_bytes(self):
        big = os.urandom(300_000)
        self.assertEqual(self.sb.write_from("a", io.BytesIO(big)).bytes, len(big))
        self.sb.write_from("b", (big[i:i + 777] for i in range(0, len(big), 777)))
        self.sb.write_from("c", big)
        for name in "abc":
            self.assertEqual(self.sb.read_bytes(name), big)

    def test_a_source_that_fails_writes_nothing(self):
        def pieces():
            yield b"x"
            raise RuntimeError("the source broke")

        with self.assertRaisesRegex(RuntimeError, "the source broke"):
            self.sb.write_from("f", pieces())
        with self.assertRaisesRegex(TypeError, "not binary"):
            self.sb.write_from("f", io.StringIO("text"))
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_read_into_a_file_or_function(self):
        big = os.urandom(300_000)
        self.sb.write("f", big)
        file, pieces = io.BytesIO(), []
        self.sb.read_into("f", file)
        self.sb.read_into("f", pieces.append, offset=100, limit=1000)
        self.assertEqual(file.getvalue(), big)
        self.assertEqual(b"".join(pieces), big[100:1100])

    def test_a_sink_that_fails(self):
        self.sb.write("f", "x")

        def fail(data):
            raise RuntimeError("the sink broke")

        with self.assertRaisesRegex(RuntimeError, "the sink broke"):
            self.sb.read_into("f", fail)

    def test_tar(self):
        self.sb.write_many({"d/a": "1", "d/b/c": "2"})
        file, seen = io.BytesIO(), []
        self.sb.export_tar("d", file, on_progress=lambda entries, size: seen.append(entries))
        names = tarfile.open(fileobj=io.BytesIO(file.getvalue())).getnames()
        self.assertIn("a", [name.removeprefix("./") for name in names])
        self.sb.mkdir("e")
        self.sb.import_tar("e", io.BytesIO(file.getvalue()))
        self.sb.write_tar([file.getvalue()], "g")
        for path in ("e/b/c", "g/b/c"):
            self.assertEqual(self.sb.read_bytes(path), b"2")

    def test_export_and_import(self):
        self.sb.write_many({"d/a": "1", "d/.git/hooks/pre-commit": "#!/bin/sh\n",
                            "d/.git/HEAD": "ref: refs/heads/main\n", "d/.git/objects/x": "",
                            "d/.git/refs/x": "", "d/.git/config": "[core]\n"})
        out, held = self.dir / "out", []
        self.sb.export("d", out, on_protected=lambda path, rule: held.append(path))
        self.assertEqual((out / "a").read_text(), "1")
        self.assertEqual(held, [".git/hooks/pre-commit"])
        self.assertFalse((out / ".git/hooks/pre-commit").exists())
        self.sb.export("d", self.dir / "all", protected=True)
        self.assertTrue((self.dir / "all/.git/hooks/pre-commit").exists())
        (out / "a").write_text("2")
        (out / ".git").rename(self.dir / "away")
        self.sb.import_(out, "d2")
        self.assertEqual(self.sb.read_bytes("d2/a"), b"2")
        (out / "b").write_text("3")
        self.assertCode("too_large", self.sb.import_, out, "d3", max_entries=1)


class Search(Case):
    def test_grep_with_context_glob_and_limit(self):
        self.sb.write_many({"a.py": "1\nx\n3\n", "b.txt": "x\n", "c.py": b"x \xff\n"})
        got = self.sb.grep("x", glob="*.py", context=1)
        self.assertEqual([(m.path, m.line, m.is_context) for m in got],
                         [("a.py", 1, True), ("a.py", 2, False), ("a.py", 3, True),
                          ("c.py", 1, False)])
        self.assertEqual(got[3].text_bytes, b"x \xff")
        self.assertTrue(self.sb.grep("x", max=1).truncated)
        self.assertEqual(len(self.sb.grep("nothing")), 0)
        self.assertCode("invalid", self.sb.grep, "(", regex=True)

    def test_watch(self):
        with self.sb.watch(recursive=True) as watch:
            self.assertCode("timeout", watch.next, 10)
            self.sb.write("new", "x")
            event = watch.next()
            self.assertEqual((event.kind, event.path, event.is_dir), ("create", "new", False))

    def test_a_watch_ends_with_its_sandbox(self):
        sb = self.open()
        watch, events = sb.watch(), []
        thread = threading.Thread(target=lambda: events.extend(watch))
        thread.start()
        sb.destroy()
        thread.join()
        self.assertEqual(events, [])


class CopyOnWrite(Case):
    def setUp(self):
        super().setUp()
        (self.dir / "keep").write_text("old\n")
        self.cow = self.open("jail", cow=True)

    def test_diff_tells_what_changed(self):
        self.cow.sh("echo new >keep; echo x >added")
        got = self.cow.diff(patch=True, counts=True, hashes=True)
        self.assertEqual([(c.path, c.kind, c.lines_added) for c in got.changes],
                         [("added", "added", 1), ("keep", "modified", 1)])
        self.assertEqual(got.changes[1].hash_before, hashlib.sha256(b"old\n").hexdigest())
        self.assertIn(b"+new\n", got.patch)
        self.assertIsNone(self.cow.diff().patch)
        self.assertIsNone(got.changes[0].outcome)
        self.assertEqual([c.path for c in self.cow.diff(["keep"]).changes], ["keep"])

    def test_a_conflict_is_told_and_resolved(self):
        self.cow.write("keep", "sandbox\n")
        (self.dir / "keep").write_text("host\n")
        got = self.cow.commit()
        self.assertFalse(got.written)
        (conflict,) = got.conflicts
        self.assertEqual((conflict.path, conflict.host, conflict.sandbox),
                         ("keep", b"host\n", b"sandbox\n"))
        self.assertEqual(got.changes[0].outcome, "conflict")
        self.assertTrue(self.cow.commit(resolved={"keep": "both\n"}).written)
        self.assertEqual((self.dir / "keep").read_text(), "both\n")

    def test_commit_of_some_dry_and_by_side(self):
        self.cow.write_many({"a": "1", "b": "2", "keep": "mine\n"})
        self.assertFalse(self.cow.commit(dry_run=True).written)
        self.cow.commit(["a"])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["a", "keep"])
        (self.dir / "keep").write_text("host\n")
        self.assertTrue(self.cow.commit(mine=True).written)
        self.assertEqual((self.dir / "keep").read_text(), "host\n")

    def test_snapshots_forks_and_discard(self):
        self.cow.write("keep", "1\n")
        first = self.cow.snapshot_as("one")
        self.assertEqual(first.name, "one")
        self.assertCode("exists", self.cow.snapshot_as, "one")
        self.assertTrue(self.cow.snapshot().snapshot)
        self.cow.write("keep", "2\n")
        self.assertEqual([s.name for s in self.cow.snapshots()][0], "one")
        with self.cow.fork() as other:
            self.assertNotEqual(other.id, self.cow.id)
            self.assertEqual(other.read_bytes("keep"), b"2\n")
        self.cow.rollback("one")
        self.assertEqual(self.cow.read_bytes("keep"), b"1\n")
        self.cow.discard()
        self.assertEqual(self.cow.read_bytes("keep"), b"old\n")
        self.assertCode("unsupported", self.open().undo)


if __name__ == "__main__":
    unittest.main()

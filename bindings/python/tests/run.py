"""run.py [NAME...]: runs the tests as TAP and ends with a line of counts.

The environment has CAISSON_TEST_DIR. Exit status 1 if a test failed."""
import sys
import unittest


class Tap(unittest.TestResult):
    """Prints one line for each test."""

    def __init__(self):
        super().__init__()
        self.buffer = False
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}
        self.bad = []

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self.bad.append(f"{subtest}\n{self._exc_info_to_string(error, test)}")

    def addError(self, test, error):
        self.bad.append(self._exc_info_to_string(error, test))
        if not isinstance(test, unittest.TestCase):  # setUpClass
            self.line("failed", "not ok", str(test))

    addFailure = addError

    def addSkip(self, test, reason):
        self.line("skipped", "ok", f"{test.id()} # SKIP {reason.splitlines()[0]}")
        self.skipped.append((test, reason))

    def stopTest(self, test):
        super().stopTest(test)
        if self.bad:
            self.line("failed", "not ok", test.id())
        elif not self.skipped or self.skipped[-1][0] is not test:
            self.line("passed", "ok", test.id())

    def line(self, kind, word, text):
        self.counts[kind] += 1
        print(f"{word} {sum(self.counts.values())} - {text}", flush=True)
        for line in "\n".join(self.bad).splitlines():
            print(f"# {line}", flush=True)
        self.bad = []


def main():
    names = sys.argv[1:] or ["test_behaviour", "test_commands", "test_files", "test_lifecycle",
                             "test_asyncio"]
    tap = Tap()
    unittest.defaultTestLoader.loadTestsFromNames(names).run(tap)
    print(", ".join(f"{count} {kind}" for kind, count in tap.counts.items()))
    sys.exit(1 if tap.counts["failed"] else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""The last line of the Python tests counts tests, not subtests, and agrees with the exit status."""
import contextlib
import io
import unittest

import summary


class Mixed(unittest.TestCase):
    def test_fourteen_subtests_of_one_fail(self):
        for number in range(15):
            with self.subTest(number):
                self.assertEqual(number, 0)

    def test_passes(self):
        pass

    def test_subtest_and_cleanup_fail(self):
        self.addCleanup(self.fail)
        with self.subTest():
            self.fail()

    @unittest.skip("for the count")
    def test_skipped(self):
        pass


class Unready(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise OSError("for the count")

    def test_never_runs(self):
        pass


class Fine(unittest.TestCase):
    def test_passes(self):
        with self.subTest():
            pass


def closing(*cases):
    """Last line and exit status of a file with the tests of these classes."""
    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, cases))
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            summary.run(suite)
        except SystemExit as end:
            return out.getvalue().splitlines()[-1], end.code


class Summary(unittest.TestCase):
    def test_last_line(self):
        self.assertEqual(closing(Mixed), ("1 passed, 2 failed, 1 skipped", 1))
        self.assertEqual(closing(Mixed, Fine, Unready), ("2 passed, 3 failed, 1 skipped", 1))
        self.assertEqual(closing(Fine), ("1 passed, 0 failed", 0))
        self.assertEqual(closing(), ("0 passed, 0 failed", 1))


if __name__ == "__main__":
    summary.run(unittest.defaultTestLoader.loadTestsFromTestCase(Summary))

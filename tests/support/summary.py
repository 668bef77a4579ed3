"""Run unittest tests; the last line is `N passed, N failed`, counting tests, and the exit status agrees with it."""

import sys
import unittest


class Tally(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def names(outcomes):
    """The tests behind failures or skips; a subtest counts as its test."""
    return {getattr(test, "test_case", test).id() for test, _ in outcomes}


def run(suite, verbosity=1):
    """Ends the process: with 0 if all tests that were not skipped passed and there was at least one."""
    result = unittest.TextTestRunner(verbosity=verbosity, resultclass=Tally).run(suite)
    failed = names(result.failures + result.errors)
    skipped = names(result.skipped) - failed
    print(f"{result.passed} passed, {len(failed)} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    sys.exit(0 if result.wasSuccessful() and result.testsRun > 0 else 1)

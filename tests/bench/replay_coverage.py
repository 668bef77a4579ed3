#!/usr/bin/env python3
"""Coverage of the replay study's 95% intervals: synthetic logs of 600 events by a policy with unequal probabilities, each used to value the greedy policy
learned on half of its own events, whose true value is known to 0.004.

    tests/bench/replay_coverage.py [LOGS] [PROGRAM]         1 000 logs take about half a minute"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))

import replay


def main():
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    program = sys.argv[2] if len(sys.argv) > 2 else "build/user/thompson"
    with tempfile.TemporaryDirectory() as folder:
        shares = replay.coverage(lambda *arguments: subprocess.run([program, "run", *arguments], check=True, stdout=subprocess.DEVNULL), folder, logs)
    for name, share in shares.items():
        print(f"{name:5s} {100 * share:5.1f}% of {logs} intervals hold the truth (standard error {100 * (share * (1 - share) / logs) ** 0.5:.1f}%)")
    return 0 if all(0.92 <= share <= 0.98 for share in shares.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

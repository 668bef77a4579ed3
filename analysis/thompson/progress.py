"""What long calls say of their progress, on standard error: of those that were not asked, only what comes when they have taken a while."""
from __future__ import annotations

import concurrent.futures
import math
import sys
import time

PATIENCE = 3.0  # seconds before a call that was not asked speaks
clock = time.monotonic


class Progress:
    """The progress of a call that begins now; shown: True always, False never, None once the call has taken PATIENCE seconds."""

    def __init__(self, shown: bool | None):
        self.after = PATIENCE if shown is None else 0.0 if shown else math.inf
        self.start = clock()

    def line(self, text):
        """Show a line, if it is time."""
        if clock() - self.start >= self.after:
            print(text, file=sys.stderr, flush=True)

    def wait(self, outcome, what):
        """The result of a future. While it takes long, shows for how long: in less than five seconds, and later whenever the time has grown by about a tenth."""
        pause = min(max(self.after, 1), 5)
        while concurrent.futures.wait([outcome], pause).not_done:
            elapsed = clock() - self.start
            self.line(f"{what}: {elapsed:.0f} s so far")
            pause = max(5, elapsed / 10)
        return outcome.result()

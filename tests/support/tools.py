"""clang's tools for C, in the one version with which the tree was made: other versions format and warn differently."""

import re
import shutil
import subprocess
import sys

VERSION = "14"  # Debian 12's
SKIPPED = 77  # the exit status that CTest reads as "not run"


def find(name):
    """The path of the tool and None, or None and the reason why it cannot be used."""
    reason = f"{name} {VERSION} is needed, and there is none"
    for path in filter(None, map(shutil.which, (f"{name}-{VERSION}", name))):
        printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.search(r"version (\d+)", printed)
        if version and version[1] == VERSION:
            return path, None
        reason = f"{name} {VERSION} is needed, and {path} is version {version[1] if version else 'unknown'}"
    return None, reason


def require(name):
    """The path of the tool; if it is missing the test is skipped."""
    path, reason = find(name)
    if not path:
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    return path

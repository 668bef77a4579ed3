#!/usr/bin/env python3
"""clang-tidy finds nothing in src with the checks of .clang-tidy."""

import os
import pathlib
import re
import subprocess
import sys

import tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["THOMPSON_PROGRAM"]).parent
AT_ONCE = 16  # files per process


def main():
    tool = tools.require("clang-tidy")
    if not (BUILD / "compile_commands.json").exists():
        print(f"{BUILD} has no compile_commands.json: configure it by a preset")
        print("0 passed, 1 failed")
        return 1
    files = sorted((ROOT / "src").rglob("*.c"))
    wrong = set()
    for start in range(0, len(files), AT_ONCE):
        process = subprocess.run([tool, "-p", BUILD, "--quiet", "--extra-arg=-Wno-unused-command-line-argument", *files[start:start + AT_ONCE]], capture_output=True, text=True, check=False)
        found = set(re.findall(r"^(\S+:\d+:\d+: .*)$", process.stdout, re.MULTILINE))
        wrong |= found if found or process.returncode == 0 else {process.stderr}
    print("".join(f"{line}\n" for line in sorted(wrong)), end="")
    print(f"{len(files) if not wrong else 0} passed, {len(wrong)} failed")
    return 1 if wrong or not files else 0


sys.exit(main())

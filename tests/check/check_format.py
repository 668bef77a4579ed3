#!/usr/bin/env python3
"""Every C and C++ file in src, tests and docs/templates is formatted as .clang-format says."""

import pathlib
import re
import subprocess
import sys

import tools

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main():
    tool = tools.require("clang-format")
    files = sorted(f for folder in ("src", "tests", "docs") for f in (ROOT / folder).rglob("*") if f.suffix in (".c", ".h", ".cpp"))
    answer = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", *files], capture_output=True, text=True, check=False)
    wrong = sorted(set(re.findall(r"^(.+?):\d+:\d+: error:", answer.stderr, re.MULTILINE)))
    failed = len(wrong) if wrong or answer.returncode == 0 else 1
    print("".join(f"{file} is not formatted\n    run: clang-format -i {file}\n" for file in wrong) if wrong else answer.stderr, end="")
    if not files:
        print("no C files found")
        failed = 1
    print(f"{len(files) - failed if files else 0} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())

#!/usr/bin/env python3
"""Every C and C++ file in src and tests is formatted as .clang-format says."""

import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main():
    tool = shutil.which("clang-format")
    if not tool:
        print("clang-format is missing: install the package clang-format")
        print("0 passed, 1 failed")
        return 1
    files = sorted(f for folder in ("src", "tests") for f in (ROOT / folder).rglob("*") if f.suffix in (".c", ".h", ".cpp"))
    failed = 0
    for file in files:
        answer = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", file], capture_output=True, text=True)
        if answer.returncode != 0:
            failed += 1
            first = answer.stderr.splitlines()[0] if answer.stderr else "clang-format failed"
            print(f"{first}\n    run: clang-format -i {file.relative_to(ROOT)}")
    if not files:
        print("no C files found")
        failed = 1
    print(f"{len(files) - failed if files else 0} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())

#!/usr/bin/env python3
"""The architecture, checked: who may include whom, header guards, and that no test is left out of the build."""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

# A file may include its own layer and those before it. Only MPI_LAYERS know MPI.
LAYERS = ["core", "io", "model", "sampler", "problem", "policy", "study", "parallel", "app"]
MPI_LAYERS = {"parallel", "app"}

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
GUARD = re.compile(r"^\s*#\s*ifndef\s+(\w+)\s*\n\s*#\s*define\s+(\w+)", re.MULTILINE)


def check_include(layer, kind, name):
    """What is wrong with one include line, or None."""
    if name == "mpi.h":
        return None if layer in MPI_LAYERS else f"includes mpi.h; only {' and '.join(sorted(MPI_LAYERS))} may"
    if kind == "<":
        return None
    parts = name.split("/")
    if len(parts) not in (2, 3) or parts[0] not in LAYERS:
        return f'includes "{name}": write "layer/name.h" or "layer/kind/name.h"'
    if LAYERS.index(parts[0]) > LAYERS.index(layer):
        return f'includes "{name}": layer {parts[0]} stands above {layer}'
    if not (SOURCE / name).exists() and not (SOURCE / f"{name}.in").exists():
        return f'includes "{name}", which does not exist'
    return None


def check_guard(file, text):
    expected = re.sub(r"[^A-Z0-9]", "_", f"{file.parent.name}_{file.stem}".upper()) + "_H"
    found = GUARD.search(text)
    if not found or found.groups() != (expected, expected):
        return f"its guard must be {expected}"
    return None


def check_sources(report):
    for file in sorted(SOURCE.rglob("*.[ch]")) + sorted(SOURCE.rglob("*.cpp")) + sorted(SOURCE.rglob("*.h.in")):
        layer = file.relative_to(SOURCE).parts[0]
        if layer not in LAYERS or len(file.relative_to(SOURCE).parts) not in (2, 3):
            report(file, "lies outside the layers: src/LAYER/NAME or src/LAYER/KIND/NAME")
            continue
        text = file.read_text(encoding="utf-8")
        for kind, name in INCLUDE.findall(text):
            report(file, check_include(layer, kind, name))
        if ".h" in file.suffixes:
            header = file.with_suffix("") if file.suffix == ".in" else file
            report(file, check_guard(header, text))
    for folder in SOURCE.iterdir():
        if folder.is_dir():
            report(folder, None if folder.name in LAYERS else "is not a known layer")


def check_tests(report):
    """Every test program is found by a GLOB of tests/CMakeLists.txt that is turned into tests."""
    build = ROOT / "tests" / "CMakeLists.txt"
    text = build.read_text()
    globs = re.findall(r"file\(\s*GLOB\s+(\w+)\s+(?:CONFIGURE_DEPENDS\s+)?([^)\s]+)\s*\)", text)
    used = [pattern for name, pattern in globs if re.search(rf"foreach\(\s*\w+\s+IN\s+LISTS\s+{name}\s*\)", text)]
    for pattern in ("test_*.c", "mpi_*.c", "check_*.py", "program_*.py", "cluster_*.py"):
        for file in sorted((ROOT / "tests").rglob(pattern)):
            name = file.relative_to(build.parent).as_posix()
            found = any("/" not in name and fnmatch.fnmatch(name, glob) for glob in used)
            report(file, None if found else "is not run by tests/CMakeLists.txt")


def main():
    counts = {"passed": 0, "failed": 0}

    def report(file, wrong):
        counts["failed" if wrong else "passed"] += 1
        if wrong:
            print(f"{file.relative_to(ROOT)}: {wrong}")

    check_sources(report)
    check_tests(report)
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not counts["passed"] else 0


sys.exit(main())

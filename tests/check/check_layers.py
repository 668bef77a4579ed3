#!/usr/bin/env python3
"""The architecture, checked: who may include whom, header guards, and that no test is left out of the build."""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

# A file may include its own layer and those before it. Only MPI_LAYERS call MPI.
LAYERS = [
    "core", "core/linalg", "io", "model/mixture", "model/network", "model/history", "model/logs", "model/denoiser", "model/prior",
    "sampler/mixture", "sampler", "sampler/check", "rule", "library", "problem", "policy", "metric", "study",
    "parallel", "parallel/priors", "parallel/tasks", "parallel/results", "app",
]
MPI_LAYERS = {"parallel"}
LEAVES = {"library"}                # what is installed for others; the program does not use it
# Headers *_internal.h stay in their folder.
# Folders inside a layer. The files directly in a layer are its interface and include no header of these folders; headers stay in their room,
# except for the doors listed here.
ROOMS = {
    "io/config": {"config.h", "config_rows.h"},
    "sampler/exact": {"exact.h"},  # a score says how exact draws were made
    "sampler/diffusion": set(),
    "sampler/localised": set(),
    "sampler/gradient": set(),
    "sampler/markov": set(),
    "sampler/tilted": {"tilt_end.h"},  # the study of log-concavity measures where tilted transport starts
    "sampler/particle": set(),
    # `prepare` uses these to turn other people's data into embedding files, and `parallel` shares the factorisation among ranks.
    "study/probe": set(),
    "problem/operator": set(),
    "problem/embedding": {"embedding_classifier.h", "embedding_file.h", "embedding_factorisation.h", "embedding_idx.h", "embedding_linear_fit.h", "ratings.h"},
}
# Arrows between rooms of one layer: (from, header), with the reason.
BETWEEN = {
    # The reverse process of tilted transport uses the Gaussian moments of the denoised sample, as joint moments do.
    ("sampler/tilted", "sampler/diffusion/diffusion_moments.h"),
    # The baseline of tilted transport takes Langevin steps, and the particles of SMC move by Metropolis steps.
    ("sampler/tilted", "sampler/markov/langevin.h"),
    ("sampler/particle", "sampler/markov/metropolis.h"),
}

# Each random stream has its own purpose (core/rng.h), never a reserved place in another stream.
RESERVED_STREAM = re.compile(r"\.(?:run|round|draw|position)\s*\|?=\s*(?:UINT32_MAX|0x[0-9a-fA-F]{8}|1u\s*<<|[A-Z_]{3,}\b(?!\())|\bRNG_\w+\b[^;{}]*\|\s*[A-Z_]{3,}")

# Only the study and what stands above it know which kind of study runs: what follows from it is passed down.
STUDY_KIND = re.compile(r'\bconfig_\w+\([^,"]+,\s*"study"')

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)


def check_include(room, kind, name):
    """What is wrong with one include line of a file in this room, or None."""
    layer = room if room in LAYERS else room.split("/")[0]
    if name == "mpi.h":
        return None if layer in MPI_LAYERS else f"includes mpi.h; only {' and '.join(sorted(MPI_LAYERS))} may"
    if kind == "<":
        return None
    place, _, header = name.rpartition("/")
    above = place if place in LAYERS else place.split("/")[0]
    if place not in LAYERS and place not in ROOMS:
        return f'includes "{name}": write "layer/name.h" or "layer/room/name.h"'
    if not (SOURCE / name).exists() and not (SOURCE / f"{name}.in").exists():
        return f'includes "{name}", which does not exist'
    if LAYERS.index(above) > LAYERS.index(layer):
        return f'includes "{name}": layer {above} stands above {layer}'
    if above in LEAVES and layer != above:
        return f'includes "{name}": nothing here builds on {above}'
    if place in ROOMS and place != room and (room, name) not in BETWEEN and (above == layer or header not in ROOMS[place]):
        return f'includes "{name}", which is internal to {place}'
    if header.endswith("_internal.h") and place != room:
        return f'includes "{name}", which is internal to {place}'
    return None


def check_guard(file, text):
    """Headers have include guards; the installed one has one in standard C."""
    once = re.search(r"^#pragma once$", text, re.MULTILINE)
    return "lacks #pragma once" if not once and file.name != "thompson.h" else None


def check_sources(report):
    for file in sorted(SOURCE.rglob("*.[ch]")) + sorted(SOURCE.rglob("*.cpp")) + sorted(SOURCE.rglob("*.h.in")):
        room = file.parent.relative_to(SOURCE).as_posix()
        if room not in LAYERS and room not in ROOMS:
            report(file, "lies outside the layers and their rooms")
            continue
        text = file.read_text(encoding="utf-8")
        for kind, name in INCLUDE.findall(text):
            report(file, check_include(room, kind, name))
        reserved = RESERVED_STREAM.search(text)
        report(file, f"reserves a place in a random stream: '{reserved.group()}'; give it a purpose in core/rng.h" if reserved else None)
        if room.split("/")[0] in LAYERS[:LAYERS.index("study")]:
            report(file, "asks which kind of study runs; let the study pass down what follows from it" if STUDY_KIND.search(text) else None)
        if ".h" in file.suffixes:
            report(file, check_guard(file, text))
    for room, doors in ROOMS.items():
        for door in doors:
            report(SOURCE / room, None if (SOURCE / room / door).exists() else f"has no {door} to open")


def check_tests(report):
    """Every test program matches a GLOB of tests/CMakeLists.txt that is turned into tests, and CUnit programs of one process lie in the folder of the
    layer that they test."""
    text = (ROOT / "tests" / "CMakeLists.txt").read_text()
    globs = re.findall(r"file\(\s*GLOB\s+(\w+)\s+(?:CONFIGURE_DEPENDS\s+)?([^)\s]+)\s*\)", text)
    used = [pattern for name, pattern in globs if re.search(rf"foreach\(\s*\w+\s+IN\s+LISTS\s+{name}\s*\)|add_python_tests\([^)]*\$\{{{name}\}}\)", text)]
    layers = {layer.split("/")[0] for layer in LAYERS}
    for kind in ("test_*.c", "mpi_*.c", "check_*.py", "program_*.py", "cluster_*.py", "browser_*.py"):
        for file in sorted((ROOT / "tests").rglob(kind)):
            folder = file.parent.relative_to(ROOT / "tests").as_posix()
            found = "/" not in folder and any(fnmatch.fnmatch(f"{folder}/{file.name}", glob) for glob in used)
            report(file, None if found else "is not run by tests/CMakeLists.txt")
            report(file, None if kind != "test_*.c" or folder in layers else f"does not lie in the folder of a layer of src: {', '.join(sorted(layers))}")


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

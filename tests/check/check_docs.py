#!/usr/bin/env python3
"""The pages: links have targets, the paths that they name exist, generated pages say so, pages of results say when they were measured, pages for
newcomers are short, the picture of the architecture matches the source, the map of the tests names every test, and pages and scripts for users
name the program where the preset for users builds it, which is not the folder of any other preset. Quoted numbers are for check_numbers.py."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = "src|tests|docs|jobs|analysis|data"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# A path in code, such as `src/core/rng.h` or `jobs/figure2.yaml`; not a pattern and not an output path.
NAMED_PATH = re.compile(rf"`(?:\./)?((?:{FOLDERS})/[\w./-]+\.[a-z]+)[^`]*`")
WRITTEN = {"data/movielens.nc", "data/mnist.nc"}     # by the commands of the pages
# What newcomers read, and how many words it may have in total.
NEWCOMERS = ("README.md", "docs/tutorial.md", "docs/which_sampler.md", "docs/guide.md", "docs/install.md", "docs/results.md")
MOST_WORDS = 6800
TEST_FILES = ("test_*.c", "mpi_*.c", "program_*.py", "check_*.py", "browser_*.py", "cluster_*.py")


def pages():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "*.md"], capture_output=True, text=True, check=False)
    found = [ROOT / name for name in listed.stdout.split()] if listed.returncode == 0 else list(ROOT.glob("*.md")) + list(ROOT.glob("*/*.md"))
    return sorted(page for page in found if page.exists())


def anchors(page):
    """The anchors that headings of a page get."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        if not other.exists():
            yield f"links to {target}, which does not exist"
        elif anchor and anchor not in anchors(other):
            yield f"links to {target}, which has no such heading"


def missing_paths(page):
    for name in NAMED_PATH.findall(page.read_text(encoding="utf-8")):
        if "NAME" not in name and "KIND" not in name and name not in WRITTEN and not (ROOT / name).exists():
            yield f"names {name}, which does not exist"


def unsaid(page):
    """Reports a generated page that does not say so in its first line, and a page of results that does not say when it was measured and by which commit."""
    text = page.read_text(encoding="utf-8")
    writer = re.search(r"Written by `((?:docs|tests)/[\w/]+\.py)`", text)
    if writer and not text.startswith(f"<!-- Written by {writer[1]}"):
        yield f"is written by {writer[1]}, which its first line does not say"
    if page.parent.name == "results" and not re.search(r"^\*Measured on .*\((?:commits? )[0-9a-f]{7}", text, re.MULTILINE):
        yield "does not say when it was measured, and by which commit"


def words(page):
    """How many words a reader sees, including code and tables but not comments."""
    return len(re.sub(r"<!--.*?-->", "", page.read_text(encoding="utf-8"), flags=re.DOTALL).split())


def wrong_programs(folders):
    """Pages that send users to the program in a folder other than their preset's; `folders` are those of all presets."""
    if len(set(folders.values())) < len(folders):
        yield ROOT / "CMakePresets.json", f"two presets have one folder: {folders}"
    for file in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *filter(pathlib.Path.is_file, (ROOT / "jobs").rglob("*")), *(ROOT / "data").glob("*.sh")]:
        for folder, verb in re.findall(r"(build/\w+)/thompson( \w+)?", file.read_text(encoding="utf-8")):
            if folder != folders["user"] and verb != " bench":     # which the pages of measurements run along with the benchmarks
                yield file, f"names {folder}/thompson, but `cmake --preset user` builds {folders['user']}/thompson"


def main():
    counts = {"passed": 0, "failed": 0}

    def report(file, wrong):
        counts["failed" if wrong else "passed"] += 1
        if wrong:
            print(f"{file.relative_to(ROOT)}: {wrong}")

    found = pages()
    for page in found:
        wrong = [*broken_links(page), *([] if page.name == "CHANGELOG.md" else missing_paths(page)), *unsaid(page)]
        for sentence in wrong or [None]:
            report(page, sentence)
    for script, written in (("draw_architecture.py", "docs/architecture.svg"), ("write_jobs.py", "jobs/README.md")):
        checked = subprocess.run([sys.executable, ROOT / "docs" / script, "--check"], capture_output=True, text=True, check=False)
        report(ROOT / written, checked.stdout.strip() or checked.stderr.strip() or None)
    count = sum(words(ROOT / name) for name in NEWCOMERS)
    report(ROOT / "README.md", f"and the other pages of newcomers have {count} words, more than {MOST_WORDS}" if count > MOST_WORDS else None)
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]
    for file, wrong in [*wrong_programs({preset["name"]: preset["binaryDir"].removeprefix("${sourceDir}/") for preset in presets}), (ROOT / "CMakePresets.json", None)]:
        report(file, wrong)
    map_of_tests = ROOT / "tests" / "README.md"
    named = set(re.findall(r"`(\w+)`", map_of_tests.read_text(encoding="utf-8")))
    tests = {file.stem for pattern in TEST_FILES for file in (ROOT / "tests").rglob(pattern)}
    for name in sorted(tests - named):
        report(map_of_tests, f"does not name {name}")
    for name in sorted(name for name in named - tests if re.match(r"(test|mpi|program|check|browser|cluster)_", name)):
        report(map_of_tests, f"names {name}, which does not exist")
    print(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] or not found else 0


sys.exit(main())

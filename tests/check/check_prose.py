#!/usr/bin/env python3
"""Plain English, checked: comments, messages, pages and the subjects of commits avoid what reads like a translation."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

COMMENT = re.compile(r"/\*(?:[^*]|\*(?!/))*\*/", re.S)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
# A function's comment: flush left, and directly above something with an argument list.
FUNCTION = re.compile(r"\A\n(?!\n)(?:SIMD_CLONES\s+)?(?!#|typedef|enum|struct|extern|[{}/])(?P<head>[^;{}=]*?)\(")

OF = re.compile(r"(?:^|[.:;] )Of (?!course)[a-z`]")
# Words in -s that are no verbs: plurals, and questions.
NO_VERB = set("""As Always Attributes Bases Besides Blocks Bytes Cells Centres Characters Columns Coordinates Counters Curves Densities
    Draws: Eigenvalues Entries Failures Floats Insertions Is Items Its Journals Lanes Less Lines Logs Means Minus Mixtures Modes Moments Normals
    Numbers Operations Options Others Parameters Perhaps Pivots Places Plus Points Responsibilities Results Rewards Rows Seconds Settings Slopes
    Spreadsheets Stages Streams Stretches Tasks This Units Unless Values Was Weights Words Zeros""".split())
VERB = re.compile(r"\A(?:[A-Z][a-z-]*s)\b")
# A second verb has the form of the first: "Makes the folder and locks it".
SECOND_VERB = re.compile(r"\A[A-Z][a-z-]*s [^.:;]*,? and (?:add|apply|ask|assemble|check|expand|find|hand|lock|rename|return|say|see|take|tell)\b")
# Words that are not used here, or stand twice in a row.
BANNED = re.compile(r"\b(anew|dear|dearer|dearest|mend|mends|mended|nearer|rescued?|yardsticks?|(?-i:a a|the the|of of|and and))\b", re.I)
# Numbers that people read have a digit in front of the point.
BARE_POINT = re.compile(r"(?<![\w.\])}/*'\"`$%-])[-+]?\.\d+(?![\w.]*/)")
# Where a sentence can begin in a comment or a text of a script.
OF_IN_SCRIPT = re.compile(r"(?:^\s*(?:#|//|/\*|\*)?\s*|\"\"\"|[.:;] |\")Of (?!course)[a-z`]")
SCRIPTS = {".c", ".h", ".py", ".sh", ".yaml", ".sbatch", ".pbs", ".cmake", ".txt"}
CODE = re.compile(r"```.*?```|^(?: {4}|\t).*?$|`[^`\n]*`|\]\([^)]*\)|<[^>]*>", re.S | re.M)

# Subjects of commits are "area: what is done", in the imperative, at most 72 characters; since this one, where the rule began.
RULE_BEGAN = "250bf1a"
SUBJECT = re.compile(r"\A[a-zA-Z0-9_/., -]+: [a-z]")
NOT_IMPERATIVE = re.compile(r": (?:the|a|an|one|no|what|how|all|its?|[a-z]+(?:ed|ing))\b")


def plain(comment):
    """The text of a comment in one line."""
    return re.sub(r"\s*\n\s*\*?\s?", " ", comment[2:-2]).strip()


def check_sources(report):
    for file in sorted(ROOT.glob("src/**/*.[ch]")):
        text = file.read_text()
        for found in COMMENT.finditer(text):
            comment = plain(found.group())
            line = text.count("\n", 0, found.start()) + 1
            if OF.search(comment):
                report(file, line, f"a sentence begins with 'Of': {comment[:60]}")
            if BANNED.search(comment):
                report(file, line, f"says '{BANNED.search(comment).group()}'")
            flush = found.start() == 0 or text[found.start() - 1] == "\n"
            is_function = flush and not comment.startswith("----") and FUNCTION.match(text[found.end():found.end() + 400])
            if is_function and (not VERB.match(comment) or {comment.split()[0], comment.split()[0].rstrip(",;:.")} & NO_VERB):
                report(file, line, f"the comment of a function does not begin with what it does: {comment[:60]}")
            if is_function and SECOND_VERB.match(comment):
                report(file, line, f"the second verb has another form than the first: {SECOND_VERB.match(comment).group()[-60:]}")


def check_strings(report):
    """What the program prints and explains: string literals of several words."""
    for file in sorted(ROOT.glob("src/**/*.[ch]")):
        text = COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), file.read_text())
        for found in STRING.finditer(text):
            words = found.group()[1:-1]
            for wrong in (OF.search(words), BANNED.search(words), BARE_POINT.search(words)):
                if wrong and " " in words:
                    report(file, text.count("\n", 0, found.start()) + 1, f"says '{wrong.group()}': {words[:60]}")


def check_scripts(report):
    """Comments and texts of tests, scripts and job files, line by line."""
    folders = ("analysis", "data", "docs", "jobs", "src/cmake", "tests")
    for file in sorted(path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in SCRIPTS and not path.is_symlink()):
        if file == pathlib.Path(__file__).resolve() or "golden" in file.parts:
            continue
        for number, line in enumerate(file.read_text(errors="replace").split("\n"), 1):
            for found in (OF_IN_SCRIPT.search(line), BANNED.search(line)):
                if found:
                    report(file, number, f"says '{found.group()}': {line.strip()[:60]}")


def check_pages(report):
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")), ROOT / "data/README.md"]
    for file in pages:
        text = CODE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), file.read_text())
        for number, line in enumerate(text.split("\n"), 1):
            if OF.search(line):
                report(file, number, "a sentence begins with 'Of'")
            for found in (BANNED.search(line), BARE_POINT.search(line)):
                if found:
                    report(file, number, f"says '{found.group()}'")


def check_subjects(report):
    known = subprocess.run(["git", "-C", ROOT, "log", "--no-merges", "--format=%h %s", f"{RULE_BEGAN}..HEAD"], capture_output=True, text=True, check=False)
    if known.returncode != 0:
        return  # an export without its history, or a shallow clone
    for line in known.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > 72:
            report(commit, 0, f"its subject has {len(subject)} characters: {subject}")
        if not SUBJECT.match(subject) or NOT_IMPERATIVE.search(subject) or ";" in subject:
            report(commit, 0, f"its subject is not 'area: what is done' in the imperative: {subject}")


def main():
    found = []

    def report(place, line, sentence):
        place = place.relative_to(ROOT).as_posix() if isinstance(place, pathlib.Path) else place
        found.append(f"{place}:{line}: {sentence}" if line else f"{place}: {sentence}")

    check_sources(report)
    check_strings(report)
    check_scripts(report)
    check_pages(report)
    check_subjects(report)
    print(*found, sep="\n")
    print(f"check_prose: {len(found)} places")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

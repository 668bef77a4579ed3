"""What the scripts that write pages share: published rows, tables, parts of a page between two marks, and --check."""
import csv
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def published(name):
    """The rows of data/published/NAME.csv, as they are printed."""
    with open(ROOT / "data" / "published" / f"{name}.csv", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)])


def script():
    """The running script, as pages name it."""
    return f"{pathlib.Path(sys.argv[0]).resolve().relative_to(ROOT)}"


def split(text, name):
    """What stands before the part NAME of a page, in it, and after it; the part has the marks of the running script."""
    begin, end = (f"<!-- Written by {script()}: {word} {name} -->" for word in ("from", "to"))
    before, rest = text.split(begin)
    part, after = rest.split(end)
    return before + begin, part.strip("\n"), end + after


def replaced(text, name, part):
    """The page with another part NAME."""
    before, _, after = split(text, name)
    return f"{before}\n\n{part}\n\n{after}"


def settle(page, text):
    """Writes the page; with --check on the command line, only says whether it is up to date. Returns the status to exit with."""
    if sys.argv[1:] != ["--check"]:
        page.write_text(text, encoding="utf-8")
    elif page.read_text(encoding="utf-8") != text:
        print(f"{page.relative_to(ROOT)} is out of date: run {script()}")
        return 1
    return 0

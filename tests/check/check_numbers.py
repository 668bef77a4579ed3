#!/usr/bin/env python3
"""Numbers that a page quotes agree with the table from which they come, found by key and not by text.

Each quoted number is followed by its source, in a comment that readers of the rendered page do not see:

    1.27<!-- guard; `diffts`, draws of the guard shrunk to 0.4; 0.3 -->     page of docs/results; row (the first cell); column (its heading)
    7%<!-- guard; `diffts`, draws of the guard shrunk to 0.4; 0.3; 2 -->    the second number of that cell
    0.4<!-- past_tasks; max; logs -->                                       the largest of a column, or of a row (`ROW; max`)
    55%<!-- decisions; saved by the known prior, most -->                   a number that DERIVED computes from a table
    122<!-- priors; =auto -->                                               a number in the text of that page, before <!-- =auto -->

A table may be named by the heading above it (`guard#a-weight-that-is-learned`) or by its first heading cell (`past_tasks#DiffTS`), a page outside
docs/results by its path, a row by how it begins (`three mixtures...`). A quoted number has the value of its source, rounded to its own digits.
In the pages of QUOTING every number that is not in code has such a comment, except those that say what was set (SETTING). Ends with
"N passed, N failed".

    tests/check/check_numbers.py [ROOT]       another tree, such as one in which a digit was changed
"""
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
ROOT = ROOT if ROOT.is_dir() else ROOT.parents[2]
QUOTING = ("README.md", "docs/results.md", "docs/which_sampler.md")
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
VALUE = r"[-+−]?(?:\d{1,3}(?: \d{3})+|\d+)(?:\.\d+)?"
QUOTED = re.compile(rf"({VALUE}|\b(?:{'|'.join(WORDS)})\b) ?%?<!-- ([^>]*?) -->", re.IGNORECASE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# A number that was set and not measured: what it counts, or the name that contains it.
COUNTED = ("(?:samples|tasks|observations|rounds|dimensions|stages|bandits|Gaussians|runs|users|steps|pairs|clicks|components|settings|priors|shapes|"
           "problems|claims|standard error|particles)")
OF = "(?:bandits|dimensions|temper|alpha|weight|standard deviations?)"
SETTING = re.compile(rf"N\(0, I\)|Debian \d+|C11|\b[dnT] = \d+|\d{{4}}\b(?! \w+ {COUNTED})|#\d+|\d is perfect|\d+ (?:October|November|December)|"
                     rf"{VALUE}(?: (?:to|and|or) {VALUE})?(?: \w+)? {COUNTED}|{OF} (?:of |to )?{VALUE}(?: (?:to|and) {VALUE})?")


def number(text):
    word = text.lower()
    return float(WORDS.index(word)) if word in WORDS else float(text.replace(" ", "").replace("−", "-"))


def values(cell):
    """The numbers of a cell, in order; a minus after a digit denotes a range."""
    return [float(found.replace(" ", "").replace("−", "-")) for found in re.findall(rf"(?<![\w.]){VALUE}", COMMENT.sub("", cell))]


def plain(cell):
    """A cell without markup for code, bold and links."""
    return re.sub(r"[`*]|<br>", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", COMMENT.sub("", cell))).strip()


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def tables(page, anchor=""):
    """[(heading cells, [row cells])] of a page, or of the part under the heading with this anchor."""
    found, under, head = [], not anchor, None
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            under = not anchor or re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).replace(" ", "-") == anchor
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = ([plain(cell) for cell in cells_of(line)], [])
            found += [head] if under or head[0][0] == anchor else []
        elif not re.fullmatch(r"[|: -]+", line):
            head[1].append(cells_of(line))
    return found


class Wrong(Exception):
    """A comment that refers to nothing, or to more than one thing."""


def source(root, name):
    page, _, anchor = name.partition("#")
    path = root / page if "/" in page or page.endswith(".md") else root / "docs" / "results" / f"{page}.md"
    if not path.exists():
        raise Wrong(f"names the page {page}, which does not exist")
    return path, anchor


def only(found, what):
    if len(found) != 1:
        raise Wrong(f"names {what}, which is there {len(found)} times")
    return found[0]


def columns(root, page, heading):
    """[[(row, numbers)]], for each table of the page that has a column with this heading."""
    path, anchor = source(root, page)
    having = [(head.index(plain(heading)), rows) for head, rows in tables(path, anchor) if plain(heading) in head]
    return [[(plain(row[0]), values(row[at])) for row in rows if values(row[at])] for at, rows in having]


def column(root, page, heading):
    """The same for the only such table."""
    return only(columns(root, page, heading), f"the column {heading} of {page}")


def shares(later, earlier):
    return [100 * (1 - ours / theirs) for ours, theirs in zip(later, earlier)]


def named(root, page, name):
    """The number before <!-- =NAME --> in a page."""
    text = source(root, page)[0].read_text(encoding="utf-8")
    return number(only(re.findall(rf"({VALUE}) ?%?<!-- ={re.escape(name)} -->", text), f"={name} of {page}"))


def row_of(found, name):
    """The only row with this name, or whose name begins with it."""
    beginning = plain(name.removesuffix("..."))
    having = [cells for first, cells in found if first == beginning or name.endswith("...") and first.startswith(beginning)]
    return only(having, f"the row {name}")


def decisions(root):
    """What the known prior and the rules save: arrows are Thompson sampling -> best rule, each pair with its standard error last."""
    tasks = ("decisions#rules-and-priors", "decisions#the-six-priors-of-the-diffts-paper")
    known, none = ([cell for page in tasks for row, cell in column(root, page, heading) if row != "gaussian"] for heading in ("known prior", "N(0, I)"))
    every = [[cell for page in tasks for _, cell in column(root, page, heading)] for heading in ("known prior", "N(0, I)")]
    return {"saved by the known prior": shares([cell[1] for cell in known], [cell[1] for cell in none]),
            "saved by the rules, known prior": shares([cell[1] for cell in every[0]], [cell[0] for cell in every[0]])}


def guard(root):
    """What a wrong prior costs without a guard: the first column for the six designs."""
    return {"worst without a guard": [cell[0] for _, cell in column(root, "guard#weight", "0")]}


def posterior(root):
    """LaplaceDPS with the exact chain over the floor, at each number of observations."""
    (_, rows), = [table for table in tables(source(root, "posterior")[0]) if table[0][0] == "n"]
    rows = [(plain(row[0]), [values(cell)[0] for cell in row[1:]]) for row in rows]
    return {"LaplaceDPS over the floor": [ours / floor for ours, floor in zip(row_of(rows, "diffts, exact chain"), row_of(rows, "floor"))]}


def regret(root):
    """Percent by which a mixture of ten Gaussians is above DiffTS."""
    heading = "2 048 runs, 32 learned priors"
    (_, rows), = [table for table in tables(source(root, "regret")[0]) if table[0][0] == heading]
    mixture, difference = ([values(cell)[0] for cell in row[1:]] for row in rows)
    return {"a mixture of ten above DiffTS": [-100 * less / (theirs + less) for theirs, less in zip(mixture, difference)]}


def stream(root):
    """Percent above the known prior, for the last 20 bandits, and above N(0, I), for the first 20 in the plane."""
    ends = ("cross, thompson", "cross, bayes_ucb", "rays, thompson", "rays, bayes_ucb")
    first = [values(row[1])[0] for row in tables(source(root, "stream")[0])[0][1]]
    return {"above the known prior": [100 * (named(root, "stream", name) - 1) for name in ends],
            "above it in five dimensions": [100 * (named(root, "stream", f"five, {rule}") - 1) for rule in ("thompson", "bayes_ucb")],
            "above N(0, I) at first": [-one for one in shares(first[1::2], first[::2])]}


def localised(root):
    """Percent above the floor: three mixtures, and each of six shapes."""
    rows = column(root, "localised", "measured")
    return {"above the floor, mixtures": [100 * (row_of(rows, "three mixtures...")[0] - 1)],
            "above the floor, shapes": [100 * (one - 1) for one in row_of(rows, "gm_four, rays...")[:6]]}


def papers(root):
    """All claims of the papers, by verdict."""
    (head, rows), = [table for table in tables(source(root, "docs/papers/README.md")[0]) if any("holds in part" in cell for cell in table[0])]
    counts = [sum(values(row[at])[0] for row in rows) for at in range(1, len(head))]
    return {"all": [sum(counts)], **{re.sub(r"^\W+ ", "", name): [count] for name, count in zip(head[1:], counts)}}


# For each page, {name: numbers}; quoted as "NAME, least" or "NAME, most"
DERIVED = {"decisions": decisions, "guard": guard, "posterior": posterior, "regret": regret, "stream": stream, "localised": localised, "docs/papers/README.md": papers}


def looked_up(root, reference):
    """The number that a comment refers to."""
    parts = [part.strip() for part in reference.split("; ")]
    if len(parts) == 2 and parts[1].startswith("="):
        return named(root, parts[0], parts[1][1:])
    if len(parts) == 2:
        name, _, which = parts[1].rpartition(", ")
        made = DERIVED[parts[0]](root) if parts[0] in DERIVED else {}
        if name not in made or which not in ("least", "most"):
            raise Wrong(f"names {parts[1]}, which is not made of {parts[0]}")
        return (min if which == "least" else max)(made[name])
    if len(parts) not in (3, 4):
        raise Wrong(f"has {len(parts)} parts")
    page, row, heading = parts[:3]
    at, pick = int(parts[3]) - 1 if len(parts) == 4 else 0, {"min": min, "max": max}
    if heading in pick:
        path, anchor = source(root, page)
        found = row_of([(plain(cells[0]), cells) for _, rows in tables(path, anchor) for cells in rows], row)
        return pick[heading](values(cell)[at] for cell in found[1:] if values(cell))
    if row in pick:
        return pick[row](cell[at] for _, cell in column(root, page, heading))
    return row_of([one for rows in columns(root, page, heading) for one in rows], row)[at]


def agree(quoted, value):
    """Whether a number has this value, rounded to its digits."""
    digits = len(quoted.partition(".")[2])
    return abs(abs(number(quoted)) - abs(value)) <= 0.5 * 10 ** -digits + 1e-9


def wrong_numbers(root, page):
    for quoted, reference in QUOTED.findall(page.read_text(encoding="utf-8")):
        if reference.startswith("="):
            continue
        try:
            value = looked_up(root, reference)
        except Wrong as error:
            yield f"{quoted}: the comment {error}"
        else:
            yield None if agree(quoted, value) else f"says {quoted}, but {reference} is {value:g}"


def without_source(page):
    """Numbers of a quoting page that have no comment and are not settings."""
    text = re.sub(r"^(```.*?^```|    .*?$|!\[.*?$)", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "", re.sub(r"\]\([^)]*\)", "]", QUOTED.sub("", text)))
    text = SETTING.sub("", COMMENT.sub("", text))
    yield from (f"says {found} without where it is from" for found in re.findall(rf"(?<![\w.:/-]){VALUE}(?![\w-])", text))


def with_other_digits(text):
    """A page with every digit of its tables changed, except in the headings and the names of rows, by which cells are found."""
    lines, head = [], True
    for line in text.splitlines():
        if line.startswith("|") and not head:
            name, rest = line[:line.index("|", 1)], line[line.index("|", 1):]
            line = name + re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 10), rest)
        head = not line.startswith("|") or head and not re.fullmatch(r"[|: -]+", line)
        lines.append(line)
    return "\n".join(lines)


def unseen_changes():
    """Numbers that are quoted from a cell, and would still pass if every digit of every table were different."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder)
        for page in (ROOT / "docs").rglob("*.md"):
            other = copy / page.relative_to(ROOT)
            other.parent.mkdir(parents=True, exist_ok=True)
            other.write_text(with_other_digits(page.read_text(encoding="utf-8")), encoding="utf-8")
        for name in QUOTING:
            for quoted, reference in QUOTED.findall((ROOT / name).read_text(encoding="utf-8")):
                if reference.count("; ") >= 2:
                    seen = not agree(quoted, looked_up(copy, reference))
                    yield name, None if seen else f"{quoted}, quoted from {reference}, passes where every digit of that table is another"


def main():
    counts = {True: 0, False: 0}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        name = str(page.relative_to(ROOT))
        for wrong in [*wrong_numbers(ROOT, page), *(without_source(page) if name in QUOTING else ())]:
            counts[not wrong] += 1
            if wrong:
                print(f"{name}: {wrong}")
    for name, wrong in unseen_changes() if not counts[False] else ():
        counts[not wrong] += 1
        if wrong:
            print(f"{name}: {wrong}")
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())

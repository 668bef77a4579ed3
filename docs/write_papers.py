#!/usr/bin/env python3
"""Write docs/papers: each claim of the three papers, compared with what the studies of jobs/reproduce_all.sh measured.

    docs/write_papers.py results/reproduce_full --note "two cores of ..., 70 minutes"

Writes a page for each paper, with a small picture of each study, and docs/papers/README.md with all verdicts in one table and the reason for
each claim that does not hold, holds in part or stays open; such a claim without a reason in analysis/claims/claims_*.py is an error.
"""
import argparse
import collections
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "analysis/tools"))

import needs  # noqa: E402, F401  (finds the other folders)
import claims  # noqa: E402
import judge  # noqa: E402
import script  # noqa: E402
from draw_pictures import shrink  # noqa: E402
from thompson import Error, averages, significance  # noqa: E402

# Studies whose own figure shows vectors of single MovieLens users, which its licence does not allow to be passed on: only their regret is shown.
OF_USERS = ("figure3_linear", "figure3_logistic")
GENERATED = "<!-- Written by docs/write_papers.py: change that, not this page. -->\n"
OURS = "Not in the paper"        # the place that our own claims give
MARKS = {judge.HOLDS: "🟢", judge.SO_FAR: "🟢", judge.PARTLY: "🟡", judge.FAILS: "🔴"}
SHORT = {"diffts": "DiffTS", "vits": "VITS", "tilted": "Tilted transport"}


def marked(verdict):
    return f"{MARKS.get(verdict, '⚪')} {verdict}"


def row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def table(heading, rows):
    return row(*heading) + row(*["---"] * len(heading)) + "".join(row(*cells) for cells in rows) + "\n"


def picture(root, study, folder):
    """Keep the figure of a study, made small, in `folder`; returns its Markdown, or nothing if it has no figure."""
    drawn = sorted((root / study).glob("figure*.png"))
    if not drawn:
        return ""
    with tempfile.TemporaryDirectory() as scratch:
        if study in OF_USERS:
            drawn = [pathlib.Path(scratch) / "figure.png"]
            subprocess.run([sys.executable, ROOT / "analysis/figures/figure_vits.py", root / study, "-o", drawn[0]], check=True)
        shrink(drawn[0], folder / f"{study}.png")
    return f"![figure of the study {study}]({study}.png)\n\n"


def page(root, paper, rows, datasets, folder):
    """The page for a paper: all verdicts, then each study with its picture and the evidence for its claims."""
    text = GENERATED + f"# {SHORT[paper]}, claim by claim\n\n{claims.PAPERS[paper].TITLE}. "
    text += "Written by `docs/write_papers.py`; how claims are judged and what all this took: [the three papers](README.md).\n\n"
    text += table(["", "claim", "where", "verdict"],
                  [(f"[{number}](#{number})", claim.says, claim.where, marked(verdict)) for number, (claim, verdict, _) in enumerate(rows, 1)])
    by_study = collections.defaultdict(list)
    for number, one in enumerate(rows, 1):
        by_study[one[0].study].append((number, *one))
    for study, of_study in by_study.items():
        found = datasets.get(study)
        text += f"## {study or 'Claims that no study tests'}\n\n"
        if found is not None and not isinstance(found, str):
            job = next((ROOT / "jobs").rglob(f"{study}.yaml")).relative_to(ROOT)
            text += f"{found.attrs['title']}. `{job}`, {averages.run_words(found)}.\n\n" + picture(root, study, folder)
        for number, claim, verdict, evidence in of_study:
            text += f"### {number}\n\n{claim.where}: {claim.says}\n\n**{marked(verdict)}**\n\n"
            text += "".join(f"- {sentence.replace(f'{root}/', '')}\n" for sentence in evidence) + "\n"
    return text.rstrip() + "\n"


def provenance(datasets):
    """Which program made the results, and when."""
    there = [found for found in datasets if not isinstance(found, str)]
    sources = sorted({found.attrs["source"] for found in there})
    days = sorted({found.attrs["history"][:10] for found in there})
    return f"{', '.join(sources)}; {', '.join(sorted({found.attrs['mpi_library'] for found in there}))}; {' to '.join(sorted({days[0], days[-1]}))}"


def overview(note, papers, datasets):
    """docs/papers/README.md."""
    of_paper = {paper: [verdict for claim, verdict, _ in rows if claim.where != OURS] for paper, rows in papers.items()}
    counts = {paper: collections.Counter(verdicts) for paper, verdicts in of_paper.items()}
    whole, ours = sum(counts.values(), collections.Counter()), sum(map(len, papers.values())) - sum(map(len, of_paper.values()))
    shown = [verdict for verdict in judge.VERDICTS if whole[verdict]]
    text = GENERATED + "# The papers, claim by claim\n\n"
    text += (f"**The three papers make {sum(whole.values())} claims in figures, tables and theorems: {whole[judge.HOLDS]} hold, "
             f"{whole[judge.SO_FAR]} more hold wherever runs are enough, {whole[judge.PARTLY]} hold in part, {whole[judge.FAILS]} do not hold, "
             f"{whole[judge.OPEN]} stay open, and {whole[judge.UNTESTED]} cannot be tested here.**\n"
             f"{ours} more claims, \"not in the paper\", are our own.\n\n")
    text += table(["", *(marked(verdict) for verdict in shown)],
                  [(f"[{SHORT[paper]}]({paper}.md)", *(counts[paper][verdict] for verdict in shown)) for paper in papers])
    text += f"Made by `jobs/reproduce_all.sh --scale full` and `docs/write_papers.py`: {provenance(datasets)}; {note}.\n\n"
    text += "Terms are explained in [notation](../notation.md). " + claims.HOW + "\n"
    text += significance.caution([found for found in datasets if not isinstance(found, str)]) + "\n\n"
    text += "## What does not hold, holds in part or stays open, and why\n\n"
    text += table(["claim", "verdict", "reason"],
                  [(f"[{SHORT[paper]} {number}]({paper}.md#{number}), {claim.where}: {claim.says}", marked(verdict),
                    claim.reason + (f" (`{claim.shown}`)" if claim.shown else ""))
                   for paper, rows in papers.items() for number, (claim, verdict, _) in enumerate(rows, 1) if verdict in judge.EXPLAINED])
    return text.rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", metavar="RESULTS", type=pathlib.Path, help="the folder of jobs/reproduce_all.sh")
    parser.add_argument("--note", required=True, help="the machine and what it took")
    parser.add_argument("-o", "--output", metavar="FOLDER", type=pathlib.Path, default=ROOT / "docs" / "papers")
    arguments = parser.parse_args()

    folder = arguments.output
    folder.mkdir(exist_ok=True)
    papers, every, ran = {}, [], set()
    for paper, module in claims.PAPERS.items():
        datasets = claims.opened(arguments.results, module.CLAIMS, [])
        every += datasets.values()
        ran |= {study for study, found in datasets.items() if not isinstance(found, str)}
        papers[paper] = [(claim, *claims.judged(claim, datasets)) for claim in module.CLAIMS]
        (folder / f"{paper}.md").write_text(page(arguments.results, paper, papers[paper], datasets, folder), encoding="utf-8")
    (folder / "README.md").write_text(overview(arguments.note, papers, every), encoding="utf-8")
    silent = [f"{claim.where}: {claim.says}" for rows in papers.values() for claim, verdict, _ in rows
              if verdict in judge.EXPLAINED and not claim.reason]
    without = sorted({claim.shown for rows in papers.values() for claim, verdict, _ in rows if claim.shown and verdict in judge.EXPLAINED and claim.shown not in ran})
    if without:
        raise Error(f"reasons are shown by studies that did not run: {', '.join(without)}")
    if silent:
        raise Error("these have no reason in analysis/claims/claims_*.py:\n" + "\n".join(silent))


if __name__ == "__main__":
    script.run(main)

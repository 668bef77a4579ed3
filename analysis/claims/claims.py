#!/usr/bin/env python3
"""Judges each claim of a paper by what our studies measured: verdict and evidence, as one HTML page.

Reads FOLDER/STUDY/results.nc of the studies that jobs/reproduce_all.sh runs, and the figures next to them; claims whose studies are
missing are "not run", and the page says which. Writes FOLDER/PAPER.html and a summary on stdout. Verdicts: holds, holds where
runs are enough, holds in part, does not hold, undecided (too few runs), not run, can't be tested here. Differences count when they
are significant at 5%, in a paired test over learned priors, or over runs where few priors were learned, with Holm's correction for the
tests under one verdict.
"""
import needs
import argparse
import base64
import collections
import html
import pathlib

from thompson import Error, averages, significance, store
import claims_diffts
import claims_tilted
import claims_vits
import judge
import script
from page import document, grid, paragraph, prose, tag

SHARP, READABLE = 0.55, "45rem"     # size of a figure on the page: share of its pixels; width on a narrower page
HOW = (f"Each claim is judged in each setting, by paired t-tests at {significance.LEVEL:.0%}. Where several settings or rivals enter one verdict, "
       "their tests get Holm's correction, by the same rule for and against the claim. ± is one standard error, "
       "taken over the units (runs or replicates) that the list of studies gives for each study. Divergence, the similarity of samples and the "
       "growth of costs are judged by their means alone; a constant ratio of costs depends on how the two programs were implemented, so it is "
       "reported but not judged. A claim holds if it holds in every setting. It holds where runs are enough if it holds in some settings "
       "and no mean contradicts it in the others.")
PAPERS = {"diffts": claims_diffts, "vits": claims_vits, "tilted": claims_tilted}


def judged(claim, datasets):
    """(verdict, sentences of evidence, the first of which is the reason if one is to be given). A study that is missing, or lacks
    what the claim is about, counts as not run."""
    found = datasets.get(claim.study)
    if isinstance(found, str):
        return judge.NOT_RUN, [found]
    try:
        cells = claim.judge(found)
    except Error as error:
        return judge.UNTESTED if isinstance(error, judge.Untestable) else judge.NOT_RUN, [str(error)]
    found = judge.verdict(cells)
    reason = claim.reason + (f" (study {claim.shown})" if claim.shown else "")
    return found, [reason] * (found in judge.EXPLAINED and bool(reason)) + [cell.sentence for cell in cells]


def opened(root, claims, failed):
    """{study: its dataset, or a sentence that says why it has none}; refuses a folder without any. `failed`: studies whose results may be
    from an earlier run."""
    found = {study: f"the study {study} failed" for study in failed if study in {claim.study for claim in claims}}
    for study in filter(None, (claim.study for claim in claims)):
        if study not in found:
            try:
                found[study] = store.results(root / study, kind=None)
            except Error as error:
                found[study] = str(error)
    errors = [error for error in found.values() if isinstance(error, str)]
    if len(errors) == len(found):
        raise Error(f"{root} contains no study of this paper: {errors[0]}")
    return found


def pictures(folder):
    """The figures of a study, embedded in the page; on a narrow page they keep a readable size, and scroll."""
    shown = ""
    for path in sorted(folder.glob("figure*.png")):
        data = path.read_bytes()
        width = SHARP * int.from_bytes(data[16:20], "big")  # where PNG stores the width
        image = (f'<img alt="figure of study {html.escape(folder.name)}" style="width:{width:.0f}px;max-width:max(100%,{READABLE})" '
                 f'src="data:image/png;base64,{base64.b64encode(data).decode()}">')
        shown += tag("div", image, class_="wide", tabindex="0", role="region", aria_label=f"figure of study {folder.name}")
    return shown


def said(claim):
    """A cell with the claim and where the paper makes it."""
    return tag("td", html.escape(claim.says) + tag("small", html.escape(claim.where)), class_="text")


def marked(verdict):
    """A verdict in its colour; report.css has a colour for each place in the list."""
    return tag("b", html.escape(verdict), class_="verdict", data_verdict=judge.VERDICTS.index(verdict))


def choice(rows):
    """How many claims have each verdict, with a box that hides them, without a script."""
    boxes = rules = ""
    for verdict, count in sorted(collections.Counter(verdict for _, verdict, _ in rows).items(), key=lambda one: judge.VERDICTS.index(one[0])):
        k = judge.VERDICTS.index(verdict)
        boxes += tag("label", f'<input type="checkbox" id="show{k}" checked>{marked(verdict)} {count}')
        rules += f'main:has(#show{k}:not(:checked)) :is(tr:has(td > [data-verdict="{k}"]), section:has(> p > [data-verdict="{k}"])) {{ display: none; }}\n'
    return tag("style", rules) + tag("fieldset", tag("legend", f"{len(rows)} claims, by verdict") + boxes, class_="choice")


def overview(note, rows, datasets):
    listed = grid(["", "claim", "verdict"], [[tag("a", number, href=f"#claim{number}"), said(claim), tag("td", marked(verdict), class_="text")]
                                             for number, (claim, verdict, _) in enumerate(rows, 1)], "claims", class_="plain")
    runs = [[html.escape(study), *((prose("missing"), "") if isinstance(found, str) else
                                   (prose(averages.run_words(found)), prose(significance.over([found]))))] for study, found in datasets.items()]
    there = [found for found in datasets.values() if not isinstance(found, str)]
    return (paragraph(note) + paragraph(HOW, significance.caution(there)) + choice(rows) + listed
            + tag("h3", "Studies") + grid(["study", "runs", "errors and tests"], runs, "studies", class_="plain"))


def write(root, title, note, rows, datasets):
    """The page: an overview, then a section for each claim; the figures of a study appear with its first claim."""
    parts, shown = [("overview", "Overview", overview(note, rows, datasets))], set()
    for number, (claim, verdict, evidence) in enumerate(rows, 1):
        items = "".join(tag("li", html.escape(sentence.replace(f"{root}/", ""))) for sentence in evidence)
        answer = marked(verdict) + (tag("small", html.escape(f" (study {claim.study})")) if claim.study else "")
        content = paragraph(claim.says) + tag("p", answer) + tag("ul", items)
        if claim.study and claim.study not in shown:
            content += pictures(root / claim.study)
        shown.add(claim.study)
        parts.append((f"claim{number}", f"{number}. {claim.where}", content))
    return document(title, parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", help="folder that contains the results folders")
    parser.add_argument("--paper", choices=PAPERS, required=True)
    parser.add_argument("--note", default="", help="sentence for the top of the page, such as the scale of the studies")
    parser.add_argument("--failed", metavar="STUDY", action="append", default=[], help="study to leave out because it failed")
    parser.add_argument("-o", "--output", metavar="FILE", help="default: FOLDER/PAPER.html")
    arguments = parser.parse_args()

    root, paper = pathlib.Path(arguments.folder), PAPERS[arguments.paper]
    datasets = opened(root, paper.CLAIMS, arguments.failed)
    rows = [(claim, *judged(claim, datasets)) for claim in paper.CLAIMS]
    output = script.writable(arguments.output or root / f"{arguments.paper}.html")
    output.write_text(write(root, paper.TITLE, arguments.note, rows, datasets), encoding="utf-8")
    for claim, verdict, _ in rows:
        print(f"{verdict:32} {claim.where}: {claim.says}")
    print(output)


if __name__ == "__main__":
    script.run(main)

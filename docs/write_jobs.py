#!/usr/bin/env python3
"""Write the tables of jobs/README.md from the heads of the studies; with --check, report whether the page is up to date.

    docs/write_jobs.py

A head says, each beginning on a line of its own: Purpose, Needs or Data (if there is any), Cost, Output.
"""
import re
import sys

import pages

JOBS = pages.ROOT / "jobs"
PAGE = JOBS / "README.md"
HEAD = """<!-- Written by docs/write_jobs.py: change that, or the heads of the studies, not this page. -->
# Studies and scripts

Written by `docs/write_jobs.py` from the heads of the studies, where more is said. Costs were written down on one machine;
`thompson plan FILE --calibrate` measures them on yours. Every study writes `results/NAME/results.nc`, which `analysis/tools/table.py` and
`analysis/tools/report.py` read; the last column has the pictures that were made for it.

`*.sbatch` and `study.pbs` submit a study to a [cluster](../docs/cluster.md); `environment.sh` has the settings of Open MPI for one machine and finds a
Python with the packages. `reproduce_all.sh` runs the studies of the papers and `decisions.sh` those of what to play.
"""
ROOMS = {
    "": ("Where to begin", "The main figures of the DiffTS paper, ablations, and what to play."),
    "papers": ("Papers", "The other studies of the three papers, including VITS and tilted transport."),
    "questions": ("Questions", "The studies behind our own [pages of results](../docs/results.md)."),
    "external": ("External", "Public benchmarks whose results others have published ([page](../docs/results/external.md)); `data/make_cases.py` writes their files."),
}
FIELD = re.compile(r"^# (Purpose|Needs|Data|Cost|Output): +(.*)$")


def fields_of(study):
    """The fields of a study's head, each on one line."""
    fields, last = {}, None
    for line in study.read_text(encoding="utf-8").splitlines():
        found = FIELD.match(line)
        if found:
            last = found[1]
            fields[last] = found[2]
        elif last and re.match(r"#  +\S", line):
            fields[last] += " " + line[1:].strip()
        else:
            last = None
    missing = [name for name in ("Purpose", "Cost", "Output") if name not in fields]
    if missing:
        raise SystemExit(f"{study.relative_to(pages.ROOT)}: its head lacks {', '.join(missing)}")
    return fields


def first_sentence(text):
    return re.match(r".*?(?<!\b[A-Z])[.?](?= [A-Z]|$)|.*", text)[0].rstrip(".")


def code(text):
    """Names of files as code, and no character that would end a cell."""
    return re.sub(r"(?<![`\w/])((?:jobs|analysis|data)/[\w./*-]+\w)", r"`\1`", text.replace("|", "\\|"))


def row(study):
    fields = fields_of(study)
    question = first_sentence(fields["Purpose"])
    if not question.startswith("jobs/"):
        question = question[0].upper() + question[1:]
    if "Needs" in fields and fields["Needs"] != "nothing":
        question += (" Needs " if question.endswith("?") else ". Needs ") + first_sentence(fields["Needs"])
    pictures = dict.fromkeys(re.findall(r"analysis/figures/\w+\.py|analysis/tools/sensitivity\.py|jobs/\w+\.sh", fields["Output"]))
    shown = ", ".join(f"`{name.rpartition('/')[2]}`" for name in pictures)
    return f"| [{study.stem}]({study.relative_to(JOBS)}) | {code(question)} | {code(fields['Cost'])} | {shown} |"


def page():
    lines = [HEAD]
    for room, (title, about) in ROOMS.items():
        rows = [row(study) for study in sorted((JOBS / room).glob("*.yaml"))]
        lines += [f"## {title}", "", about, "", "| study | question | cost | picture |", "|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


def main():
    return pages.settle(PAGE, page())


if __name__ == "__main__":
    sys.exit(main())

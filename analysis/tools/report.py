#!/usr/bin/env python3
"""One page that shows a study: the question, its settings, a leaderboard, curves, posterior quality, cost, failures, provenance.

Writes DIR/report.html, a page that needs neither a network nor any other file: values of the curves are read with the pointer or the
arrow keys, and policies are switched on and off. It shows the runs that are complete, and says how many are missing, so it can be made
while a study is running (after `thompson reduce DIR`).

Reads DIR/results.nc; writes DIR/report.html.
"""
import needs
import argparse
import base64
import html
import shlex

import numpy as np

from thompson import Error, averages, design, metrics, significance, store, wording
import calibration
import caption
import chart
import script
import table
from page import Charts, capital, document, folded, grid, paragraph, prose, shortened, tag, text

PROVENANCE = ("source", "history", "hostname", "mpi_ranks", "mpi_library", "compiler", "compiler_flags", "blas", "seed",
              "config_sha256", "references", "Conventions")
KINDS = {"bandit": "cumulative regret by round", "posterior": "how close the draws of each sampler are to the exact posterior",
         "convergence": "how fast each method approaches a known target",
         "stream": "regret of successive bandits while priors are learned"}
MOST = 20           # most failures that are listed unfolded
NAMED = 12          # most policies that a sentence names


def plural(count, one, many):
    return f"{count} {one if count == 1 else many}"


def star(p):
    return " *" if p < significance.LEVEL else ""


# ---- the question, and the progress

def progress(dataset):
    """A sentence on how much of the study is complete; and whether that is all of it."""
    done, failed, _ = averages.counts(dataset)
    total, there = int(averages.asked(dataset).sum()) * done.shape[1], int(done.sum())
    if there == total:
        return f"All {total} runs are in.", True
    failures = f", {failed.sum()} failed" if failed.any() else ""
    return (f"Unfinished: {there} of {total} runs are in{failures}. Means and tests are over the runs that are in; "
            "`thompson run --resume` continues.", False)


def question(dataset):
    kind = store.AXES[store.axis(dataset)]
    swept = "; ".join(f"{key} = {', '.join(dict.fromkeys(map(wording.plain, values)))}" for key, values in design.swept(dataset).items())
    sentence = (f"A {kind} study: {KINDS[kind]}, {plural(dataset.sizes['policy'], 'policy', 'policies')}, "
                f"{plural(dataset.sizes['setting'], 'setting', 'settings')}{f' ({swept})' if swept else ''}.")
    state, whole = progress(dataset)
    return paragraph(sentence, *caption.facts([dataset])) + paragraph(state, **({} if whole else {"class_": "warn", "role": "status"}))


def settings(dataset):
    keys, (done, failed, _), asked = design.swept(dataset), averages.counts(dataset), averages.asked(dataset)
    rows = []
    for s, title in enumerate(design.titles(dataset)):
        low, high = done[s].min(), done[s].max()
        rows.append([text(title), *(text(values[s]) for values in keys.values()), f"{low} to {high}" if low < high else str(low),
                     str(asked[s]), str(failed[s].sum())])
    shown = grid(["setting", *map(text, keys), "runs in, by policy", "of", "failed"], rows, "settings")
    if len(rows) > chart.FEW:
        shown = folded(f"{len(rows)} settings", shown)
    shared = [[tag("code", text(key)), prose(word)] for key, word in design.keys(dataset).items()
              if key not in keys and not key.startswith("sweep") and word != "null"]
    shared = grid(["key", "value"], shared, "keys that all settings share", class_="plain")
    return shown + folded("Keys that all settings share", shared) + policies(dataset)


def policies(dataset):
    try:
        found = design.options(dataset)
    except Error:
        return ""
    rows = []
    for label, chosen in found.items():
        words = ", ".join(f"{key} = {word}" for key, word in chosen.items() if key not in ("name", "label"))
        rows.append([text(label), prose(chosen["name"]), prose(words)])
    return folded("Policies and their options", grid(["policy", "method", "options"], rows, "policies and options", class_="plain"))


# ---- the leaderboard

def score(metric, row):
    """A row's mean of the metric with its standard error, bold if table.py finds it best."""
    shown = wording.value(getattr(row, metric), np.fmax(row.se, row.se_replicate))
    return tag("b", shown) if row.best else shown


def difference(row):
    """A row's paired difference to the reference."""
    error = np.fmax(row.difference_se, row.difference_se_replicate)
    return f"{wording.value(row.difference, error, True)}{star(row.p)}" if np.isfinite(row.difference) else ""


def tail(row):
    """The 95th percentile over runs, if the metric has it."""
    high = getattr(row, "quantile_95", np.nan)
    return f"95%: {wording.plain(float(f'{high:.3g}'))}" if np.isfinite(high) else ""


def heading(dataset, p):
    return text(design.labels(dataset)[p]) + (" <small>(reference)</small>" if set(design.references(dataset)) == {p} else "")


def board(dataset, metric, frame, order, where):
    """Policies by settings, at point `where` [setting]; below each mean what readers need to know about it."""
    axis, titles, numbers, references = store.axis(dataset), design.titles(dataset), dataset[f"{metric}_n"].values, design.references(dataset)
    own = "(reference)" if len(set(references)) > 1 else ""  # else the first column says it
    found = {(row.setting, row.policy, getattr(row, axis)): row for row in frame.itertuples()}
    rows = []
    for p in order:
        cells = []
        for s, title in enumerate(titles):
            row = found.get((title, design.labels(dataset)[p], int(dataset[axis].values[where[s]])))
            if row is None:  # settings may differ in their last point
                cells.append("–")
                continue
            n = numbers[s, p, where[s]]
            below = [own if p == references[s] else difference(row), tail(row), f"{n} of {row.runs} runs" if n < row.runs else ""]
            cells.append(score(metric, row) + "".join(tag("small", words) for words in below if words))
        rows.append(({"data_row": p}, [heading(dataset, p), *cells]))
    return grid(["policy", *map(text, titles)], rows, f"{metric} of all policies in all settings", class_="board")


def single(dataset, metric, frame, order, where):
    """The policies of a study with one setting, with everything known about each in a row."""
    axis, numbers = store.axis(dataset), dataset[f"{metric}_n"].values[0, :, where[0]]
    here = list(frame[frame[axis] == int(dataset[axis].values[where[0]])].itertuples())
    rows = []
    for p in order:
        row = here[p]
        rows.append(({"data_row": p}, [
            heading(dataset, p), score(metric, row) + (tag("small", tail(row)) if tail(row) else ""), difference(row) if p else "", html.escape(table.probability(row.p)),
            f"{row.seconds:.2g}" if np.isfinite(row.seconds) else "–", str(row.fallbacks),
            f"{numbers[p]} of {row.wanted}" if numbers[p] < row.wanted else str(row.wanted)]))
    columns = ["policy", text(metrics.words(dataset, metric)), f"minus {text(design.labels(dataset)[0])}", "p", "CPU s per run", "fallbacks", "runs"]
    return grid(columns, rows, f"{metric} of all policies", class_="board")


def leaderboard(dataset, metric):
    frame, order, one = table.frame(dataset, metric), chart.ranking(dataset, metric), dataset.sizes["setting"] == 1
    rank, where = ("best first", "Next to it") if one else ("best mean rank first", "Below it")
    few = "" if chart.has_curve(dataset, metric) else "Where a mean is over fewer runs than are in, their number is given."
    listed = "Only policies switched on below are listed." if len(order) > chart.FEW else ""
    tails = "; 95%: the 95th percentile over runs" if averages.tail(dataset, metric) is not None else ""
    note = paragraph(
        f"{capital(chart.at_end(dataset, metric))}: mean ± standard error, {rank}. {where}: the paired difference from {design.reference_words(dataset)} ± standard "
        f"error{tails}. Standard errors are {significance.errors_over([dataset])}. Tests are {significance.over([dataset])}, at {significance.LEVEL:.0%}: * the "
        "difference is not 0 (t-test, Holm's correction for all differences of the study); bold: the best of its column, "
        "significantly better than every other policy.", significance.caution([dataset]), few, listed, class_="faint")
    make = single if one else board
    shown = make(dataset, metric, frame, order, averages.last_rounds(dataset))
    if store.axis(dataset) == "sample_size":
        for point, size in enumerate(dataset["sample_size"].values[:-1]):
            shown += folded(f"The same at n = {wording.plain(size)}",
                            make(dataset, metric, frame, order, np.full(dataset.sizes["setting"], point)))
    return note + shown


# ---- charts

def curves(dataset, charts, drawn, main):
    """Charts of the metrics `drawn`; `main` is the leaderboard's metric."""
    gone = [one["label"] for one, far in zip(chart.policies(dataset, main), chart.diverged(dataset, main)) if far and not one["on"]]
    names = ", ".join(gone[:NAMED]) + (" and others" if len(gone) > NAMED else "")
    floor = any(f"{metric}_floor_mean" in dataset for metric in drawn)
    words = ("the floor of regret, below which no policy stays on average" if store.axis(dataset) == "round" else
             "the Monte-Carlo floor, the same for a second set of exact draws, which differs from the first by chance alone")
    shown = paragraph(
        f"Against the {chart.along(dataset)}: mean over completed runs with a band of one standard error {significance.errors_over([dataset])}.",
        f"Grey area: {words}." if floor else "",
        f"Switched off at first because they are far above the others: {names}." if gone else "", class_="faint")
    for metric in drawn:
        if len(drawn) > 1:
            shown += tag("h3", text(capital(metrics.words(dataset, metric))))
        shown += charts.of_settings(dataset, lambda s, title, metric=metric: chart.of_curve(dataset, metric, s, title))
    return shown


def ranks(dataset):
    """Simulation-based calibration, policies by settings."""
    at = calibration.middle(dataset)
    found, labels = calibration.table(dataset, at), calibration.measured(dataset)
    cells = {(row.of, row.setting, row.policy): "too few runs" if np.isnan(row.p) else html.escape(table.probability(row.p)) + star(adjusted)
             for row, adjusted in zip(found.itertuples(), significance.holm(found.p))}
    titles = design.titles(dataset)
    rows = [({"data_row": p}, [text(label), *(cells[of, title, label] for of in labels for title in titles)]) for p, label in enumerate(design.labels(dataset))]
    columns = [f"{title}: {of}" if len(labels) > 1 else title for of in labels for title in titles]
    note = paragraph(
        f"Simulation-based calibration at n = {wording.plain(at)}: p-value of the chi-squared test that the rank of theta* among the draws "
        f"is uniform (rank_norm: of |theta*|; rank_log_likelihood: of its likelihood), as it is for exact draws. * not uniform at {significance.LEVEL:.0%} with Holm's correction for this table. "
        "analysis/figures/calibration.py draws their distribution functions with a band.", class_="faint")
    return tag("h3", "Are the ranks of theta* uniform?") + note + grid(["policy", *map(text, columns)], rows, "uniform ranks")


def quality(dataset, charts, drawn, main):
    shown = curves(dataset, charts, drawn, main) if drawn else ""
    return shown + (ranks(dataset) if calibration.measured(dataset) else "")


def cost(dataset, charts, metric):
    seconds, train = metrics.over_runs(dataset, "seconds")[0], dataset["seconds_train"].values
    note = paragraph("CPU seconds of one run, without training. The line joins the larger dots, the policies that no other beats in both "
                     "(the Pareto front of all policies, including those switched off; oracle, which knows theta*, is left out). "
                     "Bars: one standard error.", class_="faint")
    drawn = charts.of_settings(dataset, lambda s, title: chart.of_cost(dataset, metric, s, title))
    rows = []
    for p, label in enumerate(design.labels(dataset)):
        learned = [tag("small", f"{once:.3g} training") if np.isfinite(once) else "" for once in train[:, p]]
        rows.append(({"data_row": p}, [text(label), *(f"{one:.3g}{more}" if np.isfinite(one) else "–"
                                                      for one, more in zip(seconds[:, p], learned))]))
    listed = grid(["policy", *map(text, design.titles(dataset))], rows, "CPU seconds")
    priors = plural(averages.replicates(dataset), "prior", "priors")
    return note + drawn + wall(dataset) + folded(f"CPU seconds per run, and to learn {priors}", listed)


def wall(dataset):
    if "seconds_wall" not in dataset:
        return ""
    ranks_of_job = plural(int(dataset.attrs.get("mpi_ranks", 1)), "rank", "ranks")
    return paragraph(f"The job that wrote the results took {float(dataset['seconds_wall']):.3g} s on {ranks_of_job}; the runs took "
                     f"{np.nansum(dataset['seconds'].values):.3g} CPU seconds in all.")


# ---- failures, and provenance

def watched(dataset):
    """Where draws are relative to the posterior, in the mean over runs."""
    if "draws_offset" not in dataset:
        return ""
    rows = []
    for s, title in enumerate(design.titles(dataset)):
        for p, label in enumerate(design.labels(dataset)):
            offset, spread = (dataset[name].values[s, p] for name in ("draws_offset", "draws_spread"))
            known = np.isfinite(offset)
            if known.sum() > 1:
                se = offset[known].std(ddof=1) / np.sqrt(known.sum())
                rows.append([f"{text(label)}, {text(title)}", f"{offset[known].mean():+.2f} ± {se:.2f}", f"{np.sqrt(spread[known].mean()):.2f}"])
    if not rows:
        return ""
    listed = grid(["policy, setting", "mean of draws beyond the posterior's, in posterior sd", "spread over the posterior's"], rows, "draws and the posterior")
    listed = listed if len(rows) <= MOST else folded(f"Draws of {len(rows)} policies and settings", listed)
    return tag("h3", "Are the draws from the posterior?") + listed


def failures(dataset):
    (done, failed, _), asked = averages.counts(dataset), averages.asked(dataset)
    fallbacks = np.where(dataset["status"].values == store.STATUS_OK, dataset["fallbacks"].values, 0)
    rows = []
    for s, title in enumerate(design.titles(dataset)):
        for p, label in enumerate(design.labels(dataset)):
            counts = failed[s, p], asked[s] - done[s, p] - failed[s, p], int(fallbacks[s, p].sum()), (fallbacks[s, p] > 0).sum()
            if any(counts):
                rows.append([f"{text(label)}, {text(title)}", *map(str, counts)])
    if not rows:
        return paragraph("Every run was completed, and none needed a numerical fallback.")
    listed = grid(["policy, setting", "failed", "not run", "numerical fallbacks", "runs with a fallback"], rows, "failures and numerical fallbacks")
    note = paragraph("A numerical fallback is a factorisation that needed jitter, a draw that was not finite, or a learned prior that was asked for "
                     "more precision than it was trained for; policies and settings not listed had none.",
                     class_="faint")
    return note + (listed if len(rows) <= MOST else folded(f"{len(rows)} policies and settings", listed))


def provenance(dataset):
    rows = [[tag("code", name), prose(dataset.attrs[name])] for name in PROVENANCE if name in dataset.attrs]
    return grid(["attribute", "value"], rows, "provenance", class_="plain")


def commands(dataset, folder):
    name, here, study = design.config(dataset, "name") or "study", shlex.quote(shortened(str(folder))), shortened(dataset.attrs.get("config", ""))
    figure = design.config(dataset, "figure")
    lines = [f"thompson run {name}.yaml -o again        # or mpiexec -n RANKS thompson run ...: any number gives the same results",
             f"analysis/tools/compare.py {here} again",
             f"thompson verify {here}        # runs random tasks again and compares every byte",
             f"analysis/tools/table.py {here}",
             *([] if figure in (None, "null") else [f"analysis/{'' if '/' in figure.split()[0] else 'figures/'}{figure} {here}"]),
             f"analysis/tools/report.py {here}"]
    address = "data:text/yaml;base64," + base64.b64encode(study.encode()).decode()
    link = tag("a", f"{html.escape(name)}.yaml", download=f"{name}.yaml", href=address)
    return (tag("p", f"Save {link}, the study as it was resolved, and in a clone of the program at the commit above:")
            + tag("pre", html.escape("\n".join(lines)), tabindex="0")
            + (paragraph("Absolute paths are shortened to the names of their files.") if study != dataset.attrs.get("config", "") else "")
            + folded("The resolved study", tag("pre", html.escape(study), tabindex="0")))


# ---- the page

def sections(dataset, folder, charts):
    """[(id, title, HTML)] for a study, and the metric of its leaderboard."""
    measured, axis = store.curves(dataset), store.axis(dataset)
    main, *others = [metric for metric in measured if metric not in (*significance.RANKS, "ess")] or measured
    drawn = [metric for metric in (main, *others) if chart.has_curve(dataset, metric)]
    first, rest = (drawn[:1], drawn[1:]) if axis == "sample_size" else (drawn, [])
    made = [("question", "The question", question(dataset)),
            ("settings", "Settings", settings(dataset)),
            ("leaderboard", "Leaderboard", leaderboard(dataset, main)),
            ("curves", "Regret" if axis == "round" else "Curves", curves(dataset, charts, first, main))]
    if rest or calibration.measured(dataset):
        made.append(("quality", "Posterior quality", quality(dataset, charts, rest, main)))
    return [*made, ("cost", "Time and cost", cost(dataset, charts, main)),
            ("failures", "Failures and numerical fallbacks", failures(dataset) + watched(dataset)),
            ("provenance", "Provenance", provenance(dataset)),
            ("reproduce", "Reproduce it", commands(dataset, folder))], main


def report(dataset, folder):
    """The page of one study."""
    charts = Charts()
    parts, main = sections(dataset, folder, charts)
    data = {"policies": chart.policies(dataset, main), "order": chart.ranking(dataset, main), "charts": charts.all, "few": chart.FEW}
    return document(str(dataset.attrs.get("title", "Results")), parts, data)


def opened(folders):
    """The results of a study, or of several together."""
    if len(folders) == 1:
        return store.results(folders[0], kind=None)
    names = [store.folder_of(folder).resolve().name for folder in folders]
    labels = names if len(set(names)) == len(names) else folders
    return design.together({label: store.results(folder, kind=None) for label, folder in zip(labels, folders)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="DIR", nargs="+", help="results folder of a study of any kind; several of one kind are shown on one page")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write instead")
    arguments = parser.parse_args()
    path = script.writable(arguments.output or store.folder_of(arguments.folders[0]) / "report.html")
    path.write_text(report(opened(arguments.folders), arguments.folders[0]), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    script.run(main)

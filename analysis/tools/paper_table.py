"""A study as papers print it: policies x problems, mean ± one standard error; the best of each column is bold, and so is what is not significantly
worse."""
import numpy as np

from thompson import averages, design, significance, store, wording
import markup

FORMATS = ("markdown", "latex")


def columns(dataset, metric):
    """[(heading, scores [policy, run], means [policy], errors [policy])] for each setting and point of the table."""
    axis, (means, errors), found = store.axis(dataset), averages.moments(dataset, metric), []
    for s, (title, points) in enumerate(zip(design.titles(dataset), averages.shown(dataset))):
        for point in points:
            n = f", n = {wording.plain(dataset[axis].values[point])}" if axis == "sample_size" else ""
            found.append((title + n, dataset[metric].isel({"setting": s, axis: point}).values, means[s, :, point], errors[s, :, point]))
    return found


def bold(dataset, metric, found):
    """Which cells are bold, [policy, column]: Holm's correction covers all comparisons of the table."""
    rivals, replicate = design.rivals(dataset), significance.of_runs(dataset)
    best, p = zip(*(significance.winners(significance.scores(metric, values), rivals, replicate) for _, values, _, _ in found))
    adjusted = np.split(significance.holm(np.concatenate(p)), np.cumsum([len(one) for one in p])[:-1])
    marked = np.zeros((len(rivals), len(found)), bool)
    for c, (winner, worse) in enumerate(zip(best, adjusted)):
        if winner is not None:
            others = [other for other in np.flatnonzero(rivals) if other != winner]
            marked[others, c] = ~(worse < significance.LEVEL) & np.isfinite(found[c][2][others])
            marked[winner, c] = True
    return marked


def caption(dataset, metric):
    return (f"{dataset.attrs.get('title', 'Results')}: {dataset[metric].attrs.get('long_name', metric)}, mean ± one standard error "
            f"{significance.errors_over([dataset])}; {averages.run_words(dataset)}. Bold: the best of its column and what is not significantly worse: "
            f"two-sided paired t-test against the best {significance.over([dataset])}, {significance.LEVEL:.0%}, Holm's correction for all of the table. "
            f"{significance.caution([dataset])}").rstrip()


def printed(dataset, metric, form):
    """The table as text."""
    metric = store.chosen(dataset, metric)
    found = columns(dataset, metric)
    marked = bold(dataset, metric, found)
    heading, rows = ["policy", *(title for title, *_ in found)], []
    for p, label in enumerate(design.labels(dataset)):
        texts = [wording.value(means[p], errors[p]) for _, _, means, errors in found]
        if form == "latex":
            texts = ["$" + (f"\\mathbf{{{text}}}" if strong else text) + "$" for text, strong in zip(texts, marked[p])]
            texts = [text.replace("±", "\\pm").replace("−", "-").replace("–", "\\text{--}") for text in texts]
        else:
            texts = [f"**{text}**" if strong else text for text, strong in zip(texts, marked[p])]
        rows.append([markup.escaped(label) if form == "latex" else label, *texts])
    if form == "latex":
        return markup.latex(list(map(markup.escaped, heading)), rows, caption(dataset, metric), words=1, rules={0})
    return markup.markdown(heading, rows, caption(dataset, metric), words=1)

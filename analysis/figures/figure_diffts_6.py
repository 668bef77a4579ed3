#!/usr/bin/env python3
"""Figure 6 of "Online Posterior Sampling with a Diffusion Prior" (DiffTS): what training samples and stages gain.

Give one or more results folders of bandit studies that sweep prior.train_samples or prior.stages; the panels that they allow
are drawn: (a) regret at the last round against the number of training samples, (b) against the number of stages, one panel for
each value of prior.keep_signal, (c) CPU seconds for one run, and to learn the prior once, against the number of stages. Error
bars: one standard error, as the caption says.

Reads results.nc of each DIR; writes figure_diffts_6.png and .pdf into the first DIR.
"""
import needs
from thompson import Error, design
import ablation
import caption
import drawing
import panel
import script

SAMPLES, STAGES, KEEP = "prior.train_samples", "prior.stages", "prior.keep_signal"


def titled(panels, letter, words=None):
    """The same panels; their titles begin with the letter of the paper's figure, and say `words` if given."""
    for one in panels:
        one.title = " ".join(filter(None, [f"({letter})", words or one.title]))
    return panels


def of_study(dataset):
    """The panels that one study allows."""
    keys, made = ablation.ranked_keys(dataset), []
    if SAMPLES in keys:
        made += titled(ablation.panels(dataset, "regret", SAMPLES), "a", None if len(keys) > 1 else "training set")
    if STAGES in keys:
        made += titled(ablation.panels(dataset, "regret", STAGES), "b", None if len(keys) > 1 else "stages")
        one = design.swept(dataset)[KEEP][0] if KEEP in design.swept(dataset) else None  # time does not depend on keep_signal
        for metric, words in (("seconds", "one run"), ("seconds_train", "learning")):
            made += titled(ablation.panels(dataset, metric, STAGES, select=lambda other: other.get(KEEP) == one), "c", words)
    return made


def draw(datasets):
    """The whole figure, from the results of one or more studies."""
    studies = [of_study(dataset) for dataset in datasets]
    panels = sorted((one for made in studies for one in made), key=lambda one: one.title[:3])
    if not panels:
        raise Error(f"no study sweeps {SAMPLES} or {STAGES}; analysis/figures/ablation.py draws other sweeps")
    sentences = [" ".join([*dict.fromkeys(one.title[:3] for one in made), *caption.facts([dataset])])
                 for made, dataset in zip(studies, datasets) if made]
    if any(KEEP in design.swept(dataset) for dataset in datasets):
        sentences.append("keep_signal: the diffusion factor follows from the number of stages, so that the last one keeps as much of the "
                         "signal as the last of 100 stages.")
    return panel.page(panels, datasets, sentences)


def main():
    arguments = drawing.parse(drawing.study_options(__doc__, "a bandit study", several=True))
    drawing.save(draw(drawing.results(arguments)), drawing.outputs(arguments, "figure_diffts_6"))


if __name__ == "__main__":
    script.run(main)

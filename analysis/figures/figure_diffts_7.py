#!/usr/bin/env python3
"""Figure 7 of "Online Posterior Sampling with a Diffusion Prior" (DiffTS): distance of each sampler to the exact posterior.

One column for each setting. Upper panel, if DIR/prior_samples.nc has any: samples of the true prior (blue) and of the learned
diffusion prior (red). Lower panel: distance between the draws of a sampler and exact posterior draws (the first distance that the
study measured; the paper uses the earth mover's), against the number of observations; the grey band is the Monte-Carlo floor, the
distance between two sets of exact draws, which a perfect sampler reaches. Dashed: the same sampler with other options, such as the
exact chain. A sampler that diverges leaves the axis, and the panel says how far.

Reads DIR/results.nc and DIR/prior_samples.nc; writes DIR/figure_diffts_7.png and .pdf.
"""
import needs
from thompson import design, metrics, store
import caption
import drawing
import panel
import prior
import script
import style


def draw(dataset, priors, curve="emd"):
    """The whole figure; priors may be None."""
    style.use()
    panels = [panel.of_study(dataset, curve, s, "", log=True) for s in range(dataset.sizes["setting"])]
    styles = panel.styles_of(panels)
    figure, places = prior.grid(design.titles(dataset), [prior.samples(priors, setting) for setting in dataset["setting"].values], styles)
    for axis, one in zip(places, panels):
        one.ylabel = metrics.NAMES.get(curve, curve) if one is panels[0] else ""
        panel.draw(axis, one, styles)
        panel.name_lines(axis, one.x, one.means, {label: styles[label] for label in one.names})
    panel.below(figure, panel.handles(panels),
                [*caption.facts([dataset]), caption.draws(dataset) + panel.reading(panels, [dataset])])
    return figure


def main():
    parser = drawing.study_options(__doc__, "a posterior study")
    parser.add_argument("--metric", metavar="NAME", help="metric to draw (default: the first one measured)")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments, "posterior")
    curve = store.chosen(dataset, arguments.metric)
    folder = store.folder_of(arguments.folders[0])
    priors = store.prior_samples(folder) if (folder / "prior_samples.nc").exists() else None
    drawing.save(draw(dataset, priors, curve), drawing.outputs(arguments, "figure_diffts_7"))


if __name__ == "__main__":
    script.run(main)

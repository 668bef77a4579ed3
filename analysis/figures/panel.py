"""The panel that all posterior and ablation figures share: a line for each policy, with error bars, against a number; the floor that
exact draws reach as a grey band; and the page around such panels. Notes, legends and the layout are shared by all figures.
"""
import dataclasses
import math
import textwrap

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator

from thompson import averages, design, store, wording
import caption
import drawing
import labels
import style
from style import plt

DIVERGED = 3.0      # a policy this many times above the next lower one, and above the median, leaves the axis
DECADE = 10.0       # values that span more than this factor get a log axis
COLUMNS = 4         # panels side by side; more go into further rows
WIDEST = 15         # inches: wider figures have fewer panels side by side, so that their letters can be read on a page
DODGE = 0.05        # policies are shifted sideways, over this share of the axis, so that equal ones stay visible
ROOM, LETTER = 0.2, 0.062   # inches to the right of a panel for names at the ends of lines: fixed, and for each letter
NARROW, LOW, LOWEST = 1.3, 1.0, 0.5    # inches: smaller panels have small letters, and a legend instead of names at the ends of lines; none is lower than LOWEST
LABELS = 0.8        # tick labels are at least this far apart, in their size, or are left out
FLOOR = "#BDBDBD"


class Page(Figure):
    """A figure of panels. Where these are small, labels that all of them share stand once, and `unnamed` has the legend entries of lines without names at
    their ends."""
    small, unnamed = False, ()


@dataclasses.dataclass
class Panel:
    """What is drawn; policies in the order of `names`, {label: registered name}."""
    title: str
    xlabel: str
    ylabel: str
    x: np.ndarray                 # [points], rising
    means: np.ndarray             # [policy, points]
    errors: np.ndarray            # as means
    names: dict
    done: np.ndarray              # [policy], completed runs at the point that has fewest
    wanted: int
    floor: tuple | None = None    # mean and error, [points] each
    ideal: float | None = None    # the value of a perfect sampler, if there is one
    log: bool | None = None       # whether the values have a log axis; None: if they span more than a decade
    cut: bool = True              # a policy far above the others leaves the axis
    ticks: list | None = None     # words for x = 0, 1, ..., if these are not numbers
    joined: bool = True           # points that differ in more than x are not
    binned: bool = False          # means and errors are over the points of a design in bins of x


def of_study(dataset, curve, s, title, **more):
    """The panel of one curve against its axis (sample size, ...) in setting s."""
    means, errors = (values[s] for values in averages.moments(dataset, curve))
    last = averages.last_rounds(dataset)[s] + 1
    known = np.flatnonzero(np.isfinite(means[:, :last]).any(axis=0))
    known = known if len(known) else np.arange(last)
    floor = averages.floor(dataset, curve)
    done, wanted = averages.counts(dataset)[0], averages.asked(dataset)[s]
    axis = store.axis(dataset)
    return Panel(title, dataset[axis].attrs.get("long_name", axis), curve, dataset[axis].values[known], means[:, known], errors[:, known],
                 design.policy_names(dataset), done[s], wanted, floor and tuple(values[s, known] for values in floor), **more)


def ceiling(finals):
    """Where to cut the axis, from the final value of each policy: above the last one before a jump by DIVERGED. At least half of the
    policies stay. None if no policy leaves, or if the command line sets the axis."""
    if style.LOOK.log or style.LOOK.ylim:
        return None
    ranked = np.sort(finals[np.isfinite(finals)])
    for low in range((len(ranked) - 1) // 2, len(ranked) - 1):
        if low > 0 and ranked[low + 1] > DIVERGED * ranked[low] > 0:
            return 1.3 * ranked[low]
    return None


def unfinished(labels, styles, done, wanted):
    """Notes on the policies whose runs are incomplete; a single note if there are many."""
    short = [(policy, n) for policy, n in zip(labels, done) if n < wanted]
    if len(short) > 3:
        low, high = min(n for _, n in short), max(n for _, n in short)
        return [(f"{len(short)} policies: {low} to {high} of {wanted} runs are in", style.TEXT)]
    return [(f"{policy}: {n} of {wanted} runs are in" if n else f"{policy}: no run is in", styles[policy]["color"])
            for policy, n in short]


def write_notes(axis, notes):
    """Remarks [(text, colour)] in the upper right corner of a panel, one below the other: lines that leave it do so further to the left."""
    for line, (text, colour) in enumerate(notes):
        axis.annotate(text, (0.98, 0.99), (0, -11 * line), xycoords="axes fraction", textcoords="offset points", va="top", ha="right",
                      color=style.darker(colour, 0.2), fontsize="small", zorder=4,
                      bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6})


def legend(figure, entries, y, columns):
    figure.legend(handles=entries, loc="upper center", bbox_to_anchor=(0.5, y), ncol=columns, handlelength=2.6,
                  columnspacing=1.6)


def wide(values):
    """Whether positive values span more than a decade."""
    values = values[np.isfinite(values)]
    return values.size > 0 and values.min() > 0 and values.max() > DECADE * values.min()


def highest(rows):
    """Largest finite value of each row of [n, points]; NaN if there is none."""
    finite = np.isfinite(rows)
    return np.where(finite.any(axis=1), np.where(finite, rows, -np.inf).max(axis=1), np.nan)


def spread_out(axis, x, ticks=None):
    """Label the values of x, as many as fit, always including the first and last; words are all shown, in small letters if there are many."""
    if ticks:
        axis.set_xticks(range(len(ticks)), ticks, fontsize=8 if sum(map(len, ticks)) < 40 else 5.5)
        return
    low, high = axis.get_xlim()
    place = np.log if axis.get_xscale() == "log" else np.asarray
    size = plt.rcParams["xtick.labelsize"] / (72 * axis.get_position().width * axis.figure.get_figwidth())     # as a share of the axis
    where = (place(x) - place(low)) / (place(high) - place(low))
    half = np.array([size * (style.LETTER * len(wording.plain(value)) + LABELS) / 2 for value in x])
    kept = [0]
    for i in range(1, len(x) - 1):
        if where[i] - where[kept[-1]] > half[i] + half[kept[-1]] and where[-1] - where[i] > half[-1] + half[i]:
            kept.append(i)
    axis.xaxis.set_major_locator(FixedLocator(x[sorted({*kept, len(x) - 1})]))
    axis.xaxis.set_minor_locator(FixedLocator(x))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: wording.plain(value)))
    axis.xaxis.set_minor_formatter("")


def values_axis(axis, panel, low, high, notes):
    """Scale and limits of the values; notes are above all lines that stay, and each takes a share of the axis."""
    free = max(0.3, 1 - 0.065 * len(notes))
    log = style.LOOK.log or (high > DECADE * low if panel.log is None else panel.log)
    if low > 0 and log:
        axis.set_yscale("log", nonpositive="clip")
        axis.set_ylim(low / 1.25, low / 1.25 * (1.25 ** 2 * high / low) ** (1 / free))
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: wording.plain(value)))
        if high < 50 * low:
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_minor_formatter("")
    else:
        bottom = 0 if low >= 0 and panel.ideal is None else low - 0.08 * (high - low)
        axis.set_ylim(bottom, bottom + max(1.06 * (high - bottom), 1e-12) / free)
    style.values(axis)


def points_axis(axis, x):
    """Scale and limits of x, with room at both ends."""
    if wide(x):
        axis.set_xscale("log")
        room = (x[-1] / x[0]) ** 0.06
        axis.set_xlim(x[0] / room, x[-1] * room)
    else:
        room = 0.06 * (x[-1] - x[0]) or 1
        axis.set_xlim(x[0] - room, x[-1] + room)


def beside(axis, x, p, count):
    """x of policy p of `count`, shifted slightly sideways."""
    share = DODGE * ((p + 0.5) / count - 0.5)
    low, high = axis.get_xlim()
    return x * (high / low) ** share if axis.get_xscale() == "log" else x + share * (high - low)


def draw_floor(axis, panel):
    """The floor: mean with a band of one standard error, and the area below it if smaller is better."""
    mean, error = panel.floor
    error = np.where(np.isfinite(error), error, 0)
    if panel.ideal is None:
        axis.fill_between(panel.x, np.zeros_like(mean), mean, color=FLOOR, alpha=0.35, linewidth=0, zorder=1)
    axis.fill_between(panel.x, mean - error, mean + error, color=FLOOR, linewidth=2.5, zorder=1)


def draw(axis, panel, styles):
    """One panel. A policy that diverges leaves the axis, and a note says how far off it is."""
    peaks = highest(panel.means)
    cut = ceiling(peaks) if panel.cut else None
    stays = np.ones(len(peaks), bool) if cut is None else ~(peaks > cut)
    notes = [(f"off axis: {label}, " + " to ".join(f"{value:.3g}" for value in sorted({row.min(), row.max()})),
              styles[label]["color"])
             for label, row, kept in zip(panel.names, panel.means, stays) if not kept for row in [row[np.isfinite(row)]]]
    notes += unfinished(panel.names, styles, panel.done, panel.wanted)
    points_axis(axis, panel.x)
    shown = [panel.means[stays], panel.means[stays] + np.nan_to_num(panel.errors[stays]),
             np.full((1, len(panel.x)), np.nan if panel.ideal is None else panel.ideal)]
    if panel.floor:
        draw_floor(axis, panel)
        shown.append(panel.floor[0][None])
    if panel.ideal is not None:
        axis.axhline(panel.ideal, color=style.FAINT, linewidth=0.8, linestyle=":", zorder=1)
    for p, (label, mean, error, kept) in enumerate(zip(panel.names, panel.means, panel.errors, stays)):
        if kept or (mean <= cut).any():
            axis.errorbar(beside(axis, panel.x, p, len(stays)), mean, error if np.isfinite(error).any() else None,
                          capsize=1.5, elinewidth=0.9, zorder=3, **styles[label] | ({} if panel.joined else {"linestyle": "none"}))
    shown = np.concatenate(shown)
    shown = shown[np.isfinite(shown)]
    values_axis(axis, panel, *((shown.min(), shown.max()) if shown.size else (0.0, 1.0)), notes)
    write_notes(axis, notes)
    spread_out(axis, panel.x, panel.ticks)
    if panel.title:
        style.title(axis, panel.title)
    axis.set(xlabel=panel.xlabel, ylabel=textwrap.fill(panel.ylabel, 36))


def styles_of(panels):
    """style.lines for the policies of all panels together."""
    return style.lines({label: name for panel in panels for label, name in panel.names.items()})


def unnamed(figure):
    """Legend entries of the lines that have no names at their ends."""
    return figure.unnamed if isinstance(figure, Page) else ()


def name_lines(axis, x, rows, styles):
    """Write the names of the policies at the ends of their lines, rows [policy, points], once the axis has its final limits, unless the legend has them."""
    if not unnamed(axis.figure):
        labels.ends(axis, [(label, style.darker(drawn["color"], 0.1), x, row) for (label, drawn), row in zip(styles.items(), rows)])


def lines(styles):
    """Legend entries of policies."""
    return [Line2D([], [], label=label, **drawn) for label, drawn in styles.items()]


def handles(panels):
    """Legend entry of the floor, if it is drawn; lines have their names at their ends."""
    return [Patch(color=FLOOR, label="Monte-Carlo floor")] if any(panel.floor for panel in panels) else []


def reading(panels, datasets):
    """How to read the lines: what the error bars and the floor are."""
    floor = any(panel.floor for panel in panels)
    if any(panel.binned for panel in panels):
        return caption.bins(floor)
    return caption.points(datasets, floor, any(panel.joined for panel in panels))


def below(figure, entries, sentences):
    """Legend and caption under the panels."""
    width, height = figure.get_size_inches()
    entries = [*unnamed(figure), *entries]
    longest = max((len(entry.get_label()) for entry in entries), default=0)
    rows = math.ceil(len(entries) / max(1, int(width / (0.55 + 0.075 * longest))))
    if entries:
        legend(figure, entries, 0.02 / height, math.ceil(len(entries) / rows))
    style.caption(figure, -(0.05 + 0.2 * rows) / height, sentences)


def grid(count, heights=(1,), styles=None):
    """A figure with `count` places for panels, at most COLUMNS side by side; each place has panels of these relative heights,
    one below the other, and room for the names of `styles` at the ends of lines, or small letters if there is none; it is higher than
    asked for if panels have no room at all: (figure, places [count, len(heights)] of axes)."""
    room = max((ROOM + LETTER * len(name) for name in styles or ()), default=0)
    tall = len(heights)
    most = COLUMNS if style.LOOK.size else max(1, min(COLUMNS, int(WIDEST / (3.4 + room))))
    bands = math.ceil(count / most)
    columns = math.ceil(count / bands)
    width, height = style.LOOK.size or (max(5.6, (3.4 + room) * columns), 3.2 * sum(heights) * bands)
    gap = 0.65 + room
    own = (width - 0.9 - room - gap * (columns - 1)) / columns     # width of one panel
    rows, between = tall * bands, 0.3 if tall > 1 else 0.38        # share of a panel's height
    high = (height - 0.85) / (rows + between * (rows - 1))
    small = columns > 1 and own < NARROW or rows > 1 and high < LOW
    if small:
        style.small()
        room, gap = 0, 0.45
        own = max((width - 0.9 - gap * (columns - 1)) / columns, 0.2 * width / columns)
        below = 0.33 if bands == 1 else 0.52                       # ticks and their label, and the title of the next row
        high = max(LOWEST, (height - 0.85 - below * (rows - 1)) / rows)
        height, between = 0.85 + high * rows + below * (rows - 1), below / high
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False,
                                height_ratios=tuple(heights) * bands, FigureClass=Page)
    figure.small, figure.unnamed = small, lines(styles) if small and styles else ()
    figure.subplots_adjust(left=0.75 / width, right=1 - (0.15 + room) / width, bottom=0.5 / height, top=1 - 0.35 / height,
                           hspace=between, wspace=gap / own)
    places = axes.reshape(bands, tall, columns).transpose(0, 2, 1).reshape(-1, tall)
    for spare in places[count:].ravel():
        spare.set_visible(False)
    return figure, places[:count]


def share_labels(figure, axes):
    """Labels that all axes have stand once, below and beside them."""
    width, height = figure.get_size_inches()
    look = {"fontsize": plt.rcParams["axes.labelsize"], "color": plt.rcParams["axes.labelcolor"]}
    if len({axis.get_xlabel() for axis in axes}) == 1:
        figure.supxlabel(axes[0].get_xlabel(), y=0.14 / height, va="bottom", **look)
        plt.setp(axes, xlabel="")
    if len({axis.get_ylabel() for axis in axes}) == 1:
        figure.supylabel(axes[0].get_ylabel(), x=0.38 / width, ha="right", **look)
        plt.setp(axes, ylabel="")


def page(panels, datasets, sentences=None, finish=None):
    """A whole figure of panels; panels with the same values share an axis. `sentences` replace the facts; `finish` sets the scale of each axis,
    given the axis and its panel."""
    style.use()
    styles = styles_of(panels)
    figure, places = grid(len(panels), styles=styles)
    for axis, panel in zip(places[:, 0], panels):
        draw(axis, panel, styles)
    for axis, panel in zip(places[:, 0], panels):
        same = [other for other, its in zip(places[:, 0], panels)
                if (its.ylabel, other.get_yscale()) == (panel.ylabel, axis.get_yscale())]
        axis.set_ylim(min(other.get_ylim()[0] for other in same), max(other.get_ylim()[1] for other in same))
    for axis, panel in zip(places[:, 0], panels):
        if finish:
            finish(axis, panel)
        name_lines(axis, panel.x, panel.means, {label: styles[label] for label in panel.names})
    if figure.small:
        share_labels(figure, places[:, 0])
    below(figure, handles(panels), [*(sentences or caption.facts(datasets)), reading(panels, datasets)])
    return figure


def main(description, name, what, draw):
    """A script that draws one posterior study by one of its metrics: figure DIR/NAME.png and .pdf; `what` says which studies it accepts."""
    parser = drawing.study_options(description, f"a posterior study{what}")
    parser.add_argument("--metric", metavar="NAME", help="error to show (default: the first one that the study measured)")
    arguments = drawing.parse(parser)
    dataset, = drawing.results(arguments, "posterior")
    drawing.save(draw(dataset, store.chosen(dataset, arguments.metric)), drawing.outputs(arguments, name))

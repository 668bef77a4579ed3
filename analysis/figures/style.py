"""One style for all figures: colour and marker of each policy, fonts and sizes, and the options of the command line.

Policies that usually share a figure have colours and markers that were chosen for them; for every other policy a pair follows from its name.
The chosen colours are Okabe and Ito's (Color Universal Design, 2008) and Tol's "muted" scheme (2021), both safe for colour-blind readers.
Policies that usually share a figure have different colours; the marker distinguishes the rest, and all of them in black and white.
"""
import dataclasses
import textwrap
import zlib

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

TRUE_PRIOR = "#0072B2"
LEARNED_PRIOR = "#D55E00"
TEXT = "#222222"
FAINT = "#666666"
TITLE, LETTER, SMALLEST = 1.2, 0.53, 0.65   # the largest width of a title, in panels; mean width of a letter, in its size; the smallest letters of titles, in the largest


@dataclasses.dataclass
class Look:
    """What the command line asks for in a figure; None leaves it to the script."""
    size: tuple | None = None       # inches
    no_caption: bool = False
    ylim: tuple | None = None       # limits of the axis of values
    log: bool = False


LOOK = Look()

# Policy name: colour, marker. A policy needs no entry here, but one that often shares a figure with others may get one.
POLICIES = {
    "ts": ("#0072B2", "o"),
    "tuned_ts": ("#56B4E9", "s"),
    "mixts": ("#009E73", "^"),
    "diffts": ("#D55E00", "D"),
    "dps": ("#CC79A7", "v"),
    "linucb": ("#555555", "P"),
    "egreedy": ("#E69F00", "X"),
    "smc": ("#332288", "<"),
    "smc_tempered": ("#117733", ">"),
    "joint": ("#999933", "p"),
    "twisted": ("#882255", "h"),
    "localised": ("#CC6677", "8"),
    "exact": ("#000000", "*"),
    "tilted": ("#AA4499", "d"),
    "mala": ("#999933", "8"),
    "lints": ("#332288", "H"),
    "vits1": ("#CC6677", "o"),
    "vits2": ("#882255", "s"),
    "vits2_hf": ("#AA4499", "^"),
    "lmc": ("#44AA99", "D"),
    "fgts": ("#117733", "v"),
    "vts": ("#999933", "P"),
    "rvga": ("#D55E00", "X"),
    "glm_ucb": ("#555555", "<"),
    "random": ("#BBBBBB", "d"),
    "oracle": ("#000000", "p"),
    # Where a prior is learned from (figure_logs.py).
    "theta": ("#000000", "^"),
    "logs": ("#AA4499", "D"),
    "estimates": ("#888888", "h"),
    "posterior_means": ("#BBBBBB", "s"),
}

# The policy under its own name, then variants of it under other labels, which keep its hue: share of black, dashes, and how the marker
# is filled.
OPEN = {"markerfacecolor": "white"}
VARIANTS = [(0.0, "-", {}), (0.35, (0, (4, 1.5)), OPEN), (0.55, (0, (1, 1)), {"fillstyle": "bottom", "markerfacecoloralt": "white"}),
            (0.2, (0, (5, 1, 1, 1)), {"fillstyle": "left", "markerfacecoloralt": "white"}),
            (0.7, (0, (8, 2)), {"fillstyle": "top", "markerfacecoloralt": "white"}), (0.45, (0, (3, 1, 1, 1, 1, 1)), OPEN)]
# For all other policies: each colour is the farthest in OKLab from those of POLICIES and from those before it, and dark enough on white.
COLOURS = ["#F91AF9", "#651AF9", "#AF1AF9", "#05BD05", "#BD0505", "#781DA5", "#0606E5", "#F91A8A"]
MARKERS = "os^Dv<>PXph8Hd*"


def use():
    """Set fonts and sizes for all figures that follow."""
    plt.rcParams.update({
        "font.family": "DejaVu Sans",
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.labelsize": 9,
        "axes.edgecolor": TEXT,
        "axes.labelcolor": TEXT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.8,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "lines.linewidth": 1.5,
        "lines.markersize": 5,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "savefig.dpi": 200,
        "pdf.fonttype": 42,
        "svg.hashsalt": "thompson",
    })


def small():
    """Set smaller letters and markers, for a figure of narrow panels."""
    plt.rcParams.update({"font.size": 6.5, "axes.titlesize": 7.5, "axes.labelsize": 6.5, "xtick.labelsize": 6, "ytick.labelsize": 6,
                         "lines.linewidth": 1.1, "lines.markersize": 3, "legend.fontsize": 6.5})


def darker(colour, share):
    """`colour` mixed with `share` of black."""
    return tuple((1 - share) * channel for channel in matplotlib.colors.to_rgb(colour))


def colour_and_marker(name):
    """Colour and marker of a policy: those of POLICIES, or a pair that depends only on the name and differs from all of them."""
    if name in POLICIES:
        return POLICIES[name]
    number = zlib.crc32(name.encode())
    return COLOURS[number % len(COLOURS)], MARKERS[number // len(COLOURS) % len(MARKERS)]


def lines(names):
    """{label: keyword arguments of plot} for the policies of one figure, given as {label: name}; a policy under its own name
    always has the same colour, marker and line, whatever else is drawn."""
    styles, seen = {}, {name: 1 for label, name in names.items() if label != name}
    for label, name in names.items():
        colour, marker = colour_and_marker(name)
        variant = 0
        if label != name:
            variant = seen[name]
            seen[name] += 1
        cycle, variant = divmod(variant, len(VARIANTS))
        shade, dashes, filled = VARIANTS[variant]
        marker = MARKERS[(MARKERS.index(marker) + cycle) % len(MARKERS)]
        styles[label] = {"color": darker(colour, shade), "marker": marker, "linestyle": dashes, **filled}
    return styles


def wrapped(sentence, width):
    """A sentence below a figure of `width` inches, on as few lines as possible, of about equal length."""
    most, sentence = int(15.5 * width), sentence.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
    count = len(textwrap.wrap(sentence, most))
    even = (size for size in range(1 + len(sentence) // max(count, 1), most) if len(textwrap.wrap(sentence, size)) <= count)
    return textwrap.fill(sentence, next(even, most))


def title(axis, text):
    """The title of a panel, in smaller letters if it is long; on one line if it fits."""
    largest = plt.rcParams["axes.titlesize"]
    fitting = TITLE * axis.get_position().width * axis.figure.get_figwidth() * 72 / (LETTER * largest)     # letters of the largest size
    scale = max(SMALLEST, min(1, fitting / max(len(text), 1)))
    axis.set_title(textwrap.fill(text, max(1, int(fitting / scale))), fontsize=scale * largest)


def caption(figure, y, sentences):
    """Sentences below a figure, from `y` downwards as a share of its height."""
    if not LOOK.no_caption:
        text = "\n".join(wrapped(sentence, figure.get_figwidth()) for sentence in sentences)
        figure.text(0.5, y, text, ha="center", va="top", fontsize=0.94 * plt.rcParams["font.size"], color=FAINT)


def values(axis):
    """Set up the axis of values as the command line asks."""
    if LOOK.log and axis.get_yscale() == "linear":
        axis.set_yscale("log")
        axis.autoscale(axis="y")
    if LOOK.ylim:
        axis.set_ylim(*LOOK.ylim)

"""The command line of the drawing scripts: which studies and policies, how the figure looks and where it goes."""
import argparse
import pathlib

from thompson import design, store
import script
import style

ENDINGS = (".png", ".pdf", ".svg")


def figure_file(name):
    """A file given with -o."""
    path = pathlib.Path(name)
    if path.suffix not in ENDINGS:
        raise argparse.ArgumentTypeError(f"{path}: the file name must end with one of {' '.join(ENDINGS)}")
    return path


def inches(text):
    """A length of --size."""
    length = float(text)
    if not 0.5 <= length <= 50:
        raise argparse.ArgumentTypeError(f"{text}: a figure must measure 0.5 to 50 inches")
    return length


def options(description, values=True):
    """The command line of a drawing script; `values`: the figure has an axis of values and sentences below it."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", metavar="FILE", action="append", type=figure_file,
                        help="file to write instead, in the format of its ending (may be repeated)")
    parser.add_argument("--size", nargs=2, type=inches, metavar=("WIDTH", "HEIGHT"), help="size of all panels together, in inches")
    if values:
        parser.add_argument("--no-caption", action="store_true", help="omit the sentences below the figure")
        parser.add_argument("--ylim", nargs=2, type=float, metavar=("LOW", "HIGH"), help="limits of the value axis")
        parser.add_argument("--log", action="store_true", help="logarithmic value axis, with no policy cut off")
    return parser


def study_options(description, study, several=False):
    """The same with the results folder of one study, or of several; `study` says which kind."""
    parser = options(description)
    parser.add_argument("folders", metavar="DIR", nargs="+" if several else 1, help=f"results folder of {study}")
    for option, what in (("policies", "draw only these policies, in this order"), ("without", "leave these policies out")):
        parser.add_argument(f"--{option}", metavar="LABEL,...", action="append", default=[], help=f"{what} (may be repeated)")
    return parser


def parse(parser):
    """The arguments; the look that they ask for applies to every figure that follows."""
    arguments = parser.parse_args()
    style.LOOK = style.Look(**{name: given for name, given in vars(arguments).items() if name in style.Look.__annotations__})
    return arguments


def results(arguments, kind="bandit"):
    """The studies on the command line, as a list, with the policies that it names."""
    return design.selected([store.results(folder, kind) for folder in arguments.folders], arguments.policies, arguments.without)


def outputs(arguments, name):
    """The files to write: those given with -o, or name.png and name.pdf in the first results folder."""
    return arguments.output or [store.folder_of(arguments.folders[0]) / f"{name}.{ending}" for ending in ("png", "pdf")]


def save(figure, paths):
    """Write the figure to every path, in the format of its suffix, and print where."""
    for path in paths:
        mark = {"Software" if path.suffix == ".png" else "Creator": script.MARK}
        figure.savefig(script.writable(path), bbox_inches="tight", facecolor="white", metadata=mark)
        print(path)
    style.plt.close(figure)

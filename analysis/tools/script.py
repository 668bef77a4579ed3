"""What all scripts share: how they end, and which files they may write."""
import pathlib
import sys
import warnings

from thompson import Error

BAD_FILE = 4  # exit status, as in the program
MARK = "thompson-analysis"  # in every page and figure that is made here


def writable(path, marked=True):
    """The path, if it may be written: nothing is there, or an empty file, or one that was made here (`marked`: it contains MARK). A link
    is neither followed nor replaced."""
    path = pathlib.Path(path)
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FileExistsError(f"{path} is a link or not a regular file")
    if marked and path.exists() and path.stat().st_size > 0 and MARK.encode() not in path.read_bytes():
        raise FileExistsError(f"{path} exists and was not made by these scripts; remove it or choose another name")
    return path


def run(main):
    """Run a script's main(). Bad input or a file that cannot be written becomes one sentence on stderr and an exit status; a warning of the
    package becomes a sentence without an exit status."""
    def say(sentence, *_):
        print(f"{pathlib.Path(sys.argv[0]).name}: {sentence}", file=sys.stderr)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = say
            main()
    except (Error, OSError) as error:
        say(error)
        sys.exit(error.code if isinstance(error, Error) else BAD_FILE)

"""Tables of texts as Markdown and as LaTeX."""
SPECIAL = {letter: "\\" + letter for letter in "_%&#${}"} | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}",
                                                               "^": r"\textasciicircum{}", "±": r"$\pm$", "<": r"\textless{}", ">": r"\textgreater{}"}

FORMULA = tuple("=+-@\t\r")


def markdown(heading, rows, caption, words=2):
    """Rows of texts with their caption; the first `words` columns hold words, the others numbers."""
    widths = [max(len(row[c]) for row in [heading, *rows]) for c in range(len(heading))]

    def line(row):
        return "| " + " | ".join(text.ljust(width) if c < words else text.rjust(width)
                                 for c, (text, width) in enumerate(zip(row, widths))) + " |\n"

    rule = "|" + "|".join("-" * (width + 2) if c < words else "-" * (width + 1) + ":" for c, width in enumerate(widths)) + "|\n"
    return line(heading) + rule + "".join(map(line, rows)) + f"\n{caption}\n"


def comma_separated(table):
    """A pandas table as CSV. A text that a spreadsheet would take for a formula gets an apostrophe in front, which spreadsheets hide."""
    def plain(cell):
        return f"'{cell}" if isinstance(cell, str) and cell[:1] in FORMULA else cell

    safe = table.apply(lambda column: column.map(plain) if column.dtype == object else column).rename(columns=plain)
    return safe.to_csv(index=False, lineterminator="\n")


def escaped(text):
    """Text escaped for LaTeX."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def latex(heading, rows, caption, words=2, rules=()):
    """The same in LaTeX with booktabs, from escaped texts; a rule is drawn above each row in `rules`."""
    def line(row):
        return " & ".join(row) + " \\\\\n"

    text = "% needs \\usepackage{booktabs}\n\\begin{table}\n\\centering\n\\begin{tabular}{" + "l" * words + "r" * (len(heading) - words) + "}\n\\toprule\n" + line(heading)
    text += "".join(("\\midrule\n" if index in rules else "") + line(row) for index, row in enumerate(rows))
    return text + f"\\bottomrule\n\\end{{tabular}}\n\\caption{{{escaped(caption)}}}\n\\end{{table}}\n"

"""An HTML page that needs neither a network nor any other file: elements, tables, charts that report.js draws, and the whole document."""
import html
import itertools
import json
import pathlib
import re

from thompson import design, wording
import chart
import script

MOST_LINKS = 12     # most parts that the head of a page lists; more need a table in its text
OPEN = 6            # settings whose charts are open at first
ABSOLUTE = re.compile(r"(?<![^\s=:'\"(\[])/(?:[^\s/'\"]+/)+(?=[^\s/'\"])")
HERE = pathlib.Path(__file__).resolve().parent
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def tag(name, content="", **attributes):
    """An element; `content` is already HTML, attributes are text. A trailing underscore in a name is dropped, others become dashes."""
    words = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items())
    return f"<{name}{words}>{content}</{name}>"


def shortened(words):
    """Absolute paths without their folders, which would reveal where the maker of a page works."""
    return ABSOLUTE.sub("", words)


def text(value):
    return html.escape(shortened(wording.plain(value)))


def paragraph(*sentences, **attributes):
    return tag("p", html.escape(shortened(" ".join(filter(None, sentences)))), **attributes)


def folded(summary, content, **attributes):
    return tag("details", tag("summary", html.escape(summary)) + content, **attributes)


def prose(value, name="td"):
    """A cell of words, in which lines may break."""
    return tag(name, text(value), class_="text")


def grid(heading, rows, label, **attributes):
    """A table that scrolls separately on a narrow page; with the class `board` it has a row of blocks there in place of each row of the table. The
    first cell of a row is its heading. Cells are HTML; a row may be (attributes, cells)."""
    head = tag("thead", tag("tr", "".join(tag("th", cell, scope="col") for cell in heading)))
    body = ""
    named = attributes.get("class_") == "board"     # its cells say what they show, for layouts without a row of headings
    names = [{"data_of": html.unescape(re.sub(r"<[^>]*>", "", cell))} if named else {} for cell in heading[1:]]
    for row in rows:
        extra, (first, *cells) = row if isinstance(row, tuple) else ({}, row)
        others = "".join(cell if cell.startswith("<td") else tag("td", cell, **own) for own, cell in zip(names, cells))
        body += tag("tr", tag("th", first, scope="row") + others, **extra)
    whole = tag("table", head + tag("tbody", body), **attributes)
    return tag("div", whole, class_="wide", tabindex="0", role="region", aria_label=label)


def capital(words):
    return words[:1].upper() + words[1:]


class Charts:
    """The charts of a page, in order; each is an empty figure that report.js fills."""

    def __init__(self):
        self.all = []

    def figure(self, one):
        """The figure for a chart made by chart.py."""
        self.all.append(one)
        keys = "Arrow keys read the values." if one["kind"] == "curves" else "Arrow keys move from policy to policy."
        name = f"{one['ylabel']} against {one['xlabel']}, {one['title']}. {keys}"
        caption = tag("figcaption", f"{text(one['title'])}<br><small>{text(one['ylabel'])}</small>")
        drawing = tag("svg", role="img", tabindex="0", aria_label=name)
        tip = '<div class="tip" role="status" hidden></div>'
        return tag("figure", caption + drawing + tip, class_="chart", data_chart=len(self.all) - 1)

    def of_settings(self, dataset, make):
        """make(setting, title) for each setting; those after the first OPEN are folded away together."""
        alone = {"class": "alone"} if dataset.sizes["setting"] == 1 else {}
        figures = [self.figure(make(s, title)) for s, title in enumerate(design.titles(dataset))]
        shown = tag("div", "".join(tag("div", figure, **alone) for figure in figures[:OPEN]), class_="charts")
        rest = tag("div", "".join(figures[OPEN:]), class_="charts")
        return shown + (folded(f"The other {len(figures) - OPEN} of {len(figures)} settings", rest) if figures[OPEN:] else "")


def switches(count):
    """The place where report.js puts one switch for each policy; open if there are few."""
    search = '<label>find <input id="filter" type="search" size="12"></label>' if count > chart.FEW else ""
    buttons = "".join(tag("button", word, type="button", id=word) for word in ("best", "all", "none"))
    tools = tag("div", tag("span", class_="state", role="status") + search + buttons, class_="tools")
    listed = tag("div", class_="list", role="group", aria_label="policies shown")
    state = {"open": ""} if count <= chart.FEW else {}
    return folded("Policies in the charts", tools + listed, class_="switches", **state)


def section(name, title, content):
    heading = tag("h2", html.escape(title), id=f"{name}-title")
    return tag("section", heading + content, id=name, aria_labelledby=f"{name}-title")


def document(title, parts, data=None):
    """The whole page from parts [(id, title, HTML)]. `data` is what report.js draws the charts from; the switches of the policies stay
    visible next to the parts, from the first with a chart to the last."""
    links = "".join(tag("a", html.escape(words), href=f"#{name}") for name, words, _ in parts)
    contents = tag("nav", links, aria_label="contents") if len(parts) <= MOST_LINKS else ""
    has = ['class="chart"' in content for _, _, content in parts]
    drawn = range(has.index(True), len(has) - has[::-1].index(True)) if any(has) else range(0)
    body = ""
    for inside, group in itertools.groupby(range(len(parts)), lambda i: i in drawn):
        some = "".join(section(*parts[i]) for i in group)
        body += tag("div", switches(len(data["policies"])) + some) if inside else some
    scripts = ""
    if data:
        # Without "<" nothing in a label can end or comment out the script, and ASCII has no line separators.
        numbers = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True).replace("<", "\\u003c")
        scripts = '<noscript><p class="warn">The charts need JavaScript; the tables do not.</p></noscript>\n'
        scripts += f'<script type="application/json" id="data">{numbers}</script>\n<script>{(HERE / "report.js").read_text()}</script>'
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>\n'
            f'<meta name="generator" content="{script.MARK}">\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">\n'
            f'<link rel="icon" href="data:,">\n<style>{(HERE / "report.css").read_text()}</style></head>\n'
            f"<body><header>{tag('h1', html.escape(title))}{contents}</header>\n<main>{body}</main>\n{scripts}</body></html>\n")

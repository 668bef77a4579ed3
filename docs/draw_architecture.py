#!/usr/bin/env python3
"""The picture of docs/architecture.md, from the includes: which room of src/ uses which.

usage: docs/draw_architecture.py [--check]

Writes docs/architecture.svg; with --check only reports whether that file matches the includes (exit status 1 if it does not). Rows and
columns are the rooms in include order, so everything lies on or below the diagonal. Counts are left out, so the picture changes only
when the architecture does. The order of the layers and their rooms is that of tests/check/check_layers.py, which enforces it.
"""
import argparse
import ast
import pathlib
import re
import sys
import xml.sax.saxutils

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
PICTURE = ROOT / "docs" / "architecture.svg"
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)/[^"/]+"', re.MULTILINE)
CELL, LABEL, HEAD, NOTE = 24, 190, 150, 40
LAYER_FILLS = ["#eaf2fb", "#f6f8fa"]
INK, FAINT, INSIDE, BETWEEN = "#1f2933", "#9aa5b1", "#d5dde6", "#2f6db3"


def rooms():
    """Layers in include order, each followed by its rooms, as tests/check/check_layers.py lists them."""
    tree = ast.parse((ROOT / "tests" / "check" / "check_layers.py").read_text(encoding="utf-8"))
    found = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign) for target in node.targets if isinstance(target, ast.Name)}
    layers = ast.literal_eval(found["LAYERS"])
    inner = [ast.literal_eval(key) for key in found["ROOMS"].keys]
    return [room for layer in layers for room in [layer, *(name for name in inner if name.split("/")[0] == layer)] if files_of(room)]


def files_of(room):
    return sorted(path for path in (SOURCE / room).glob("*") if path.suffix in (".c", ".h"))


def find_uses(names):
    """Pairs (room, other room) with at least one include."""
    return {(room, target) for room in names for path in files_of(room) for target in INCLUDE.findall(path.read_text(encoding="utf-8"))}


def text(x, y, content, size=12, anchor="start", fill=INK, extra=""):
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"{extra}>{xml.sax.saxutils.escape(content)}</text>'


def row(index, room, names, uses):
    y, layers = HEAD + index * CELL, list(dict.fromkeys(name.split("/")[0] for name in names))
    fill = LAYER_FILLS[layers.index(room.split("/")[0]) % 2]
    parts = [f'<rect x="0" y="{y}" width="{LABEL + len(names) * CELL}" height="{CELL}" fill="{fill}"/>',
             text(12 + 18 * room.count("/"), y + 17, room, 13, extra=' font-weight="600"' if "/" not in room else "")]
    for column, other in enumerate(names):
        if column == index or (room, other) in uses:
            x, colour = LABEL + column * CELL + 3, INSIDE if column == index else BETWEEN
            parts.append(f'<rect x="{x}" y="{y + 3}" width="{CELL - 6}" height="{CELL - 6}" rx="3" fill="{colour}"/>')
    return parts


def draw():
    names = rooms()
    uses = find_uses(names)
    width, height = LABEL + len(names) * CELL + 60, HEAD + len(names) * CELL + NOTE
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
             text(12, 28, "Who includes whom", 17, extra=' font-weight="600"'),
             text(12, 50, "a row uses its columns", 12, fill=FAINT)]
    for index, room in enumerate(names):
        parts += row(index, room, names, uses)
        x = LABEL + index * CELL + CELL // 2 + 4
        parts.append(text(x, HEAD - 8, room, 12, extra=f' transform="rotate(-55 {x} {HEAD - 8})"'))
    above = sorted(f"{room} uses {other}" for room, other in uses if other in names and names.index(other) > names.index(room))
    parts.append(text(12, height - 18, f"Above the diagonal: {', '.join(above)}." if above else "No room uses one further down.", 12))
    return "\n".join(parts + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; say whether the picture is that of the includes")
    arguments = parser.parse_args()
    picture = draw()
    if not arguments.check:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if PICTURE.exists() and PICTURE.read_text(encoding="utf-8") == picture:
        return 0
    print("docs/architecture.svg is not what the includes give: run docs/draw_architecture.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())

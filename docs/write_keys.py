#!/usr/bin/env python3
"""Write docs/keys.md from the output of `thompson list --json`; with --check, report whether the page is up to date.

    THOMPSON_PROGRAM=build/release/thompson docs/write_keys.py
"""
import itertools
import json
import os
import subprocess
import sys

import pages

PAGE = pages.ROOT / "docs" / "keys.md"
HEAD = """<!-- Written by docs/write_keys.py: change that, not this page. -->
# Keys of a study file

Written by `docs/write_keys.py` from the program's own tables; `thompson list keys` prints them, `thompson list NAME` one of them, and
`thompson list --schema` is a JSON schema by which editors complete and check study files.

A dotted key may be written nested (`problem: {arms: 100}`) or dotted (`problem.arms: 100`). Every key but those marked *fixed* and those that
hold lists may have a list under `sweep:`; the settings are the product of the lists, or with `zip: true` under `sweep`, too,
they advance together: `sweep: {zip: true, problem.noise: [0.5, 1, 2], problem.arms: [10, 20, 40]}` has three settings (`thompson list sweep`).
With a `design` (`thompson list design`), settings are points, and under `sweep` stands for each key a list or a range, such as
`prior.stages: {from: 5, to: 100, scale: log}`; integers are rounded, and lists are shared out evenly. For D keys, the settings of `saltelli` come
in groups of D + 2: a point A, A with the first, second, ... key of another point B, and B.
`policies` is a list of names, or of mappings with `name`, `label` and the options below.
"""


def listed():
    program = os.environ.get("THOMPSON_PROGRAM", "thompson")
    return json.loads(subprocess.run([program, "list", "--json"], check=True, capture_output=True, text=True).stdout)


def cell(text):
    return str(text).replace("|", "\\|")


def kind(key):
    """Type and range of a key: integer 1 .. 100, or `auto`."""
    words = ", ".join(f"`{word}`" for word in key.get("words", []))
    if key["type"] in ("word", "list of words"):
        return f"{'list of ' if key['type'] != 'word' else ''}{words}"
    limits = f" {key['minimum']} .. {key['maximum']}" if "minimum" in key else ""
    return f"{key['type']}{limits}{f', or {words}' if words else ''}{', *fixed*' if key.get('fixed') else ''}"


def default(key):
    return {None: "required", "null": ""}.get(key["default"], f"`{key['default']}`")


def table(keys):
    rows = ["| key | value | default | |", "|---|---|---|---|"]
    return "\n".join(rows + [f"| `{key['name']}` | {cell(kind(key))} | {cell(default(key))} | {cell(key['help'])} |" for key in keys])


def page(everything):
    parts = [HEAD]
    for section, keys in itertools.groupby(everything["keys"], lambda key: key["name"].partition(".")[0] if "." in key["name"] else ""):
        parts.append((f"## `{section}`\n\n" if section else "") + table(list(keys)) + "\n")
    parts.append("## Options of policies\n")
    policies = everything["policies"]
    shared = set.intersection(*({option["name"] for option in policy["options"]} for policy in policies if "needs" in policy))
    common = [option for option in policies[0]["options"] if option["name"] in shared]
    parts.append(f"Every policy that samples:\n\n{table(common)}\n")
    rules = [f"- `{rule['name']}`: {rule['summary']} ({rule['reference']})" for rule in everything["rules"]]
    parts.append("Rules, the values of `rule`:\n\n" + "\n".join(rules) + "\n")
    for policy in policies:
        own = [option for option in policy.get("options", []) if option not in common]
        parts.append(f"### `{policy['name']}`\n\n{policy['summary']} ({policy['reference']}).\n" + (f"\n{table(own)}\n" if own else ""))
    return "\n".join(parts)


def main():
    return pages.settle(PAGE, page(listed()))


sys.exit(main())

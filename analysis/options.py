"""Options of the policies of a study, as the program resolved them and wrote them into the results."""
import re

import load

LINE = re.compile(r"^ +- \{(name: .*)\}$", re.MULTILINE)
PAIR = re.compile(r"""(\w+): ("(?:\\.|[^"\\])*"|\[[^\]]*\]|[^,]*)(?:, |$)""")


def text(value):
    """A scalar of the resolved study without its quotes."""
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value


def of_policies(dataset):
    """{label: {option: its text}} of the policies, in their order, with `name` among the options."""
    listed = {}
    for line in LINE.findall(dataset.attrs.get("config", "")):
        found = {key: text(value) for key, value in PAIR.findall(line)}
        listed[found.get("label", found["name"])] = found
    missing = [label for label in map(str, dataset["policy"].values) if label not in listed]
    if missing:
        raise load.BadInput(f"the results do not say what the options of policy {missing[0]} were (attribute config)")
    return {str(label): listed[str(label)] for label in dataset["policy"].values}

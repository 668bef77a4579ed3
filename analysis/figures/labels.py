"""Labels beside points that meet neither points nor lines nor each other; a thin line leads to those that had to move away."""
import dataclasses

import numpy as np

DIRECTIONS = np.stack([np.cos(turn := np.pi / 8 * np.arange(16)), np.sin(turn)], axis=1)
DISTANCES = (4, 8, 13, 19, 26, 34, 43)      # of a label's edge from its point, in typographical points
LEADER = 10                                 # labels that are farther away have a line
STEP = 2                                    # lines are seen as points at this distance
ROOM = 1.5                                  # around a label
AWAY, MEETS = 1e4, 20.0                     # cost of leaving the axes; of each point, or point of a line, under a label


@dataclasses.dataclass
class Label:
    text: str
    point: tuple            # in data coordinates
    look: dict              # of the text
    needed: bool = True     # else it is left out where there is no free place


def along(line):
    """Points STEP apart on a line through [n, 2]."""
    parts = [np.linspace(a, b, 2 + int(np.hypot(*(b - a)) / STEP)) for a, b in zip(line[:-1], line[1:])]
    return np.concatenate(parts) if parts else line


def under(boxes, points):
    """How many of points [m, 2] lie in each of boxes [n, 2 corners, 2]."""
    inside = (points >= boxes[:, :1]) & (points <= boxes[:, 1:])
    return inside.all(axis=2).sum(axis=1)


def overlapping(boxes, others):
    """How many of `others` each box overlaps."""
    return ((boxes[:, None, 0] < others[:, 1]) & (boxes[:, None, 1] > others[:, 0])).all(axis=2).sum(axis=1)


def place(axis, labels, lines):
    """Write the labels, in this order, whose axes have their final limits; `lines`: arrays [n, 2] of points that are joined."""
    unit = axis.figure.dpi / 72
    seen = [axis.transData.transform(line) / unit for line in lines]
    taken = np.concatenate([np.empty((0, 2)), *map(along, seen), *([point] for line in seen for point in line for _ in range(3))])
    frame, written = np.array(axis.bbox.get_points()) / unit, np.empty((0, 2, 2))
    reach = np.repeat(DISTANCES, len(DIRECTIONS)).astype(float)
    towards = np.tile(DIRECTIONS, (len(DISTANCES), 1))
    for label in labels:
        text = axis.annotate(label.text, label.point, (0, 0), textcoords="offset points", ha="center", va="center", zorder=5, **label.look)
        half = np.array(text.get_window_extent().size) / unit / 2
        own = axis.transData.transform(label.point) / unit
        centres = own + towards * (half + reach[:, None])
        boxes = np.stack([centres - half - ROOM, centres + half + ROOM], axis=1)
        meets = under(boxes, taken) + 5 * overlapping(boxes, written)
        cost = reach + MEETS * meets + AWAY * ((boxes[:, 0] < frame[0]) | (boxes[:, 1] > frame[1])).any(axis=1)
        best = int(np.argmin(cost))
        text.remove()
        if not label.needed and cost[best] > LEADER:
            continue
        leader = {"arrowprops": {"arrowstyle": "-", "linewidth": 0.5, "color": label.look["color"], "shrinkA": 0, "shrinkB": 2}} if reach[best] > LEADER else {}
        axis.annotate(label.text, label.point, centres[best] - own, textcoords="offset points", ha="center", va="center", zorder=5, **label.look, **leader)
        written = np.concatenate([written, boxes[best:best + 1]])
        if leader:
            taken = np.concatenate([taken, along(np.array([own, centres[best]]))])

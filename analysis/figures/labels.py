"""Places labels next to points so that they overlap neither points nor lines nor each other, and names at the ends of lines, one below the other;
a thin line leads to those that had to move away."""
import dataclasses

import numpy as np

DIRECTIONS = np.stack([np.cos(turn := np.pi / 8 * np.arange(16)), np.sin(turn)], axis=1)
DISTANCES = (4, 8, 13, 19, 26, 34, 43)      # distances of a label's edge from its point, in typographical points
LEADER = 10                                 # labels farther away than this get a line
STEP = 2                                    # lines are treated as points at this distance
ROOM = 1.5                                  # around a label
NAME = 7.5                                  # size of the name of a line
AWAY, MEETS = 1e4, 20.0                     # cost of leaving the axes; cost of each point, or point of a line, under a label


@dataclasses.dataclass
class Label:
    text: str
    point: tuple            # in data coordinates
    look: dict              # keyword arguments of the text
    needed: bool = True     # if False, it is left out when there is no free place


def along(line):
    """Points at distance STEP on a line through [n, 2]."""
    parts = [np.linspace(a, b, 2 + int(np.hypot(*(b - a)) / STEP)) for a, b in zip(line[:-1], line[1:])]
    return np.concatenate(parts) if parts else line


def under(boxes, points):
    """How many of the points [m, 2] lie in each of the boxes [n, 2 corners, 2]."""
    inside = (points >= boxes[:, :1]) & (points <= boxes[:, 1:])
    return inside.all(axis=2).sum(axis=1)


def overlapping(boxes, others):
    """How many of `others` each box overlaps."""
    return ((boxes[:, None, 0] < others[:, 1]) & (boxes[:, None, 1] > others[:, 0])).all(axis=2).sum(axis=1)


def place(axis, labels, lines):
    """Write the labels, in this order; their axes must have their final limits. `lines`: arrays [n, 2] of points that are joined."""
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


def apart(wanted, height, low, high):
    """Positions closest to `wanted` [n], in the same order, `height` apart and within [low, high] if that has room (least squares: positions that
    would be too close are pooled)."""
    order = np.argsort(wanted, kind="stable")
    pools = []                              # [mean, count] of positions minus the height of the names below them
    for k, place in enumerate(np.asarray(wanted, float)[order]):
        pools.append([place - k * height, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, count = pools.pop()
            pools[-1] = [(pools[-1][0] * pools[-1][1] + mean * count) / (pools[-1][1] + count), pools[-1][1] + count]
    shift = np.repeat([mean for mean, _ in pools], [count for _, count in pools])
    found = np.empty(len(wanted))
    found[order] = np.clip(shift, low, max(low, high - (len(wanted) - 1) * height)) + height * np.arange(len(wanted))
    return found


def ends(axis, lines):
    """Write the name of each line to the right of the axes, which must have their final limits, at the height of its last point; `lines`:
    [(name, colour, x, y)]. Lines that end outside are left out."""
    unit, frame, shown = axis.figure.dpi / 72, np.array(axis.bbox.get_points()), []
    for name, colour, x, y in lines:
        known = np.flatnonzero(np.isfinite(np.asarray(y, float)))
        if len(known):
            end = axis.transData.transform((x[known[-1]], y[known[-1]]))
            if frame[0, 1] - 1 <= end[1] <= frame[1, 1] + 1:
                shown.append((name, colour, end))
    heights = [(end[1] - frame[0, 1]) / unit for _, _, end in shown]
    for (name, colour, end), own, place in zip(shown, heights, apart(heights, 1.15 * NAME, 0, (frame[1, 1] - frame[0, 1]) / unit)):
        off = (frame[1, 0] - end[0]) / unit
        leader = {"arrowstyle": "-", "linewidth": 0.5, "color": colour, "shrinkA": 1, "shrinkB": 2, "relpos": (0, 0.5)}
        axis.annotate(name, (end - frame[0]) / (frame[1] - frame[0]), (off + LEADER, place - own), xycoords="axes fraction", textcoords="offset points", va="center", fontsize=NAME,
                      color=colour, annotation_clip=False, arrowprops=leader if abs(place - own) > 1 or off > 1 else None)

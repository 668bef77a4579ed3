#!/usr/bin/env python3
"""The look of figures: the options that all scripts share, labels that do not overlap, and names at the ends of twelve curves."""
import importlib
import importlib.util
import pathlib
import unittest.mock

import numpy as np
from matplotlib.text import Text

from study_fixture import PRIORS, SCRIPTS, StudyTest, bandit, call, main, write_posterior, write_priors, write_results

from thompson import design, store, wording
import drawing
import labels
import regret
import style

LOOK = ("--size", "--output")
VALUES = ("--ylim", "--log", "--no-caption")
STUDIES = ("--policies", "--without")
# Scripts whose axis of values, or whose policies, cannot be chosen.
OF_FIXED_AXIS, OF_NO_STUDY = {"figure_tilted_deblur", "beyond"}, {"figure_tilted_deblur", "glm_cost", "scaling", "beyond"}
TWELVE = {f"sampler{i} of a long name": ("mixts", {"components": i}) for i in range(12)}


class Drawing(StudyTest):
    def drawn(self, name, *arguments):
        """The figure that the script would write."""
        made = []
        with unittest.mock.patch.object(drawing, "save", lambda figure, paths: made.append(figure)):
            status, _, err = call(importlib.import_module(name), self.folder, *arguments)
        self.assertEqual((status, err), (0, ""))
        return self.figure(made[0])

    def boxes(self, figure, artists):
        renderer = figure.canvas.get_renderer()
        return [artist.get_window_extent(renderer) for artist in artists]

    # ---- pictures of the pages

    def test_kept_colours(self):
        """A picture that is compressed keeps every method's colour exactly, next to blends with white."""
        spec = importlib.util.spec_from_file_location("draw_pictures", pathlib.Path(__file__).resolve().parents[2] / "docs/draw_pictures.py")
        pictures = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(pictures)
        wanted = {tuple(bytes.fromhex(colour[1:])) for colour, _ in style.POLICIES.values()}
        rows = [np.tile(np.array(colour, np.uint8), (8, 600, 1)) for colour in sorted(wanted)]
        blends = [np.linspace(row, np.full_like(row, 255), 40)[:, 0] for row in rows]
        pictures.Image.fromarray(np.concatenate([*rows, *blends]).astype(np.uint8)).save(self.folder / "large.png")
        pictures.shrink(self.folder / "large.png", self.folder / "small.png")
        with pictures.Image.open(self.folder / "small.png") as image:
            self.assertEqual(wanted - {colour for _, colour in image.convert("RGB").getcolors(1 << 24)}, set())

    def test_thin_line_among_dots(self):
        """A line of one method, of few pixels, keeps its colour next to a cloud of thousands of colours, each with more pixels."""
        spec = importlib.util.spec_from_file_location("draw_pictures", pathlib.Path(__file__).resolve().parents[2] / "docs/draw_pictures.py")
        pictures = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(pictures)
        cloud = np.random.default_rng(1).integers(0, 256, (40, 25, 3), np.uint8).repeat(12, axis=0).repeat(40, axis=1)
        colour = bytes.fromhex(style.POLICIES["dps"][0][1:])
        cloud[100, :30] = list(colour)
        pictures.Image.fromarray(cloud).save(self.folder / "large.png")
        pictures.shrink(self.folder / "large.png", self.folder / "small.png")
        with pictures.Image.open(self.folder / "small.png") as image:
            self.assertIn(tuple(colour), {found for _, found in image.convert("RGB").getcolors(1 << 24)})

    # ---- options

    def test_every_script_has_them(self):
        scripts = [name for name in SCRIPTS if hasattr(importlib.import_module(name), "drawing")
                   or hasattr(getattr(importlib.import_module(name), "panel", None), "drawing")]
        self.assertLessEqual({name for name in SCRIPTS if name.startswith("figure_")} | {"ablation", "calibration"}, set(scripts))
        for name in set(scripts) - {"clicks", "report"}:
            out = call(importlib.import_module(name), "--help")[1]
            for option in (*LOOK, *(() if name in OF_FIXED_AXIS else VALUES), *(() if name in OF_NO_STUDY else STUDIES)):
                self.assertIn(option, out, name)

    def test_policies(self):
        """The named policies, in that order; a label with a comma is one label."""
        write_results(self.folder, ["cross"])
        mean = self.drawn("figure_vits").axes[0].lines[2].get_ydata()
        figure = self.drawn("figure_vits", "--policies", "diffts,mixts", "--policies", "ts", "--without", "ts")
        self.assertEqual(len(figure.axes[0].lines), 2)
        np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), mean)
        self.refused(importlib.import_module("figure_vits"), "no study has a policy vits3; there are ts, tuned_ts", "--policies", "vits3")
        self.refused(importlib.import_module("figure_vits"), "no policy is left", "--policies", "ts", "--without", "ts")
        bandit(self.folder, policies={"VITS, II": ("vits2", {}), "lmc": ("lmc", {})})
        self.assertEqual(len(self.drawn("figure_vits", "--policies", "VITS, II").axes[0].lines), 1)

    def test_axis_of_values(self):
        """The limits are the ones asked for; no policy leaves a log axis, and the axis is the script's own again afterwards."""
        write_results(self.folder, PRIORS)
        write_priors(self.folder, PRIORS, n=50)
        for name in ("figure_vits", "figure_diffts_2"):
            figure = self.drawn(name, "--ylim", 1, 50)
            self.assertEqual([axis.get_ylim() for axis in figure.axes[-3:]], 3 * [(1, 50)])
            figure = self.drawn(name, "--log")
            for axis in figure.axes[-3:]:
                self.assertEqual(axis.get_yscale(), "log")
                self.assertGreaterEqual(axis.get_ylim()[1], max(line.get_ydata().max() for line in axis.lines))
                self.assertNotIn("off axis", " ".join(text.get_text() for text in axis.texts))
            self.assertEqual(self.drawn(name).axes[-1].get_yscale(), "linear")
        write_posterior(self.folder)
        self.assertEqual(self.drawn("figure_diffts_7", "--ylim", 0.1, 7).axes[-1].get_ylim(), (0.1, 7))

    def test_size_and_caption(self):
        write_results(self.folder, PRIORS)
        figure = self.drawn("figure_vits", "--size", 4, 2.5)
        self.assertEqual(tuple(figure.get_size_inches()), (4, 2.5))
        self.assertIn("seed 2024", figure.texts[-1].get_text())
        self.assertEqual(self.drawn("figure_vits", "--no-caption").texts, [])
        self.assertEqual(call(importlib.import_module("figure_vits"), self.folder, "--size", 0, 3)[0], 2)

    def test_narrow_panels(self):
        """Three panels in 5.5 inches: the names of lines are in a legend below, letters are smaller, and no text of a panel lies in another one."""
        write_results(self.folder, PRIORS)
        write_priors(self.folder, PRIORS, n=50)
        figure = self.drawn("figure_diffts_2", "--size", 5.5, 3.4)
        names = list(design.policy_names(store.results(self.folder)))
        self.assertEqual([text.get_text() for text in figure.legends[-1].get_texts()], names)
        for axis in figure.axes:
            self.assertGreater(axis.bbox.width / figure.dpi, 1)
            for text in axis.texts:
                self.assertLess(text.get_window_extent().width, 1.05 * axis.bbox.width, text.get_text())
        self.assertEqual(len(self.drawn("figure_diffts_2").legends), 1)

    def test_small_panels(self):
        """Nine panels in 5.5 by 3.4 inches: no two texts overlap, and axis labels that all panels share stand once. In so little that panels
        would have no room, the figure is higher than asked for."""
        bandit(self.folder, [{"problem.noise": noise, "problem.arms": arms, "problem.rounds": rounds}
                             for noise in (0.5, 1.0, 2.0) for arms in (5.0, 10.0, 20.0) for rounds in (10.0, 20.0, 30.0)])
        for size in ((5.5, 3.4), (5.5, 1)):
            figure = self.drawn("ablation", "--size", *size)
            self.assertEqual(len(figure.axes), 9)
            figure.canvas.draw()
            found = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
            self.assertEqual([sum(text.get_text() == label for text in found) for label in ("reward noise", "cumulative regret after 30 rounds")], [1, 1])
            boxes = self.boxes(figure, found)
            for k, box in enumerate(boxes):
                for other in range(k):
                    self.assertFalse(box.overlaps(boxes[other]), (found[k].get_text(), found[other].get_text()))
        self.assertGreater(figure.get_figheight(), 1)

    def test_numbers_of_points_that_are_not_joined(self):
        """Settings that change together over one decade have their values on the axis, however long, as many as fit."""
        for values in ((0.5, 1, 2, 3, 4, 5, 6, 7), tuple(np.geomspace(0.123456, 1.654321, 40))):
            bandit(self.folder, [{"problem.noise": float(noise), "problem.arms": 5.0 + k} for k, noise in enumerate(values)])
            figure = self.drawn("ablation", "--against", "noise")
            figure.canvas.draw()
            shown = [text for text in figure.axes[0].get_xticklabels() if text.get_text()]
            self.assertGreaterEqual(len(shown), 4)
            self.assertLessEqual({text.get_text() for text in shown}, set(map(wording.plain, values)))
            boxes = self.boxes(figure, shown)
            self.assertFalse(any(one.overlaps(other) for one, other in zip(boxes, boxes[1:])))

    def test_markers_on_few_rounds(self):
        """Markers on 50 rounds that are even in the logarithm are about even: their distance is that of even places, 2000 / 6, but for half a gap
        between the last kept rounds at either end."""
        rounds = np.unique(np.geomspace(1, 2000, 50).round()).astype(int)
        gap = np.diff(rounds).max()
        for share in (0, 0.4):
            marked = rounds[regret.marks(rounds, share)]
            self.assertEqual(len(marked), regret.MARKS)
            self.assertLessEqual(np.abs(np.diff(marked) - 2000 / regret.MARKS).max(), gap)

    # ---- labels and legends

    def test_labels_do_not_collide(self):
        """Twelve points in three tight groups, with lines through them: the boxes of all labels are apart, cover no point and are inside the axes."""
        style.use()
        rng = np.random.default_rng(1)
        figure, axis = style.plt.subplots(figsize=(3.4, 3.2))
        self.figure(figure)
        points = np.repeat([[1, 1], [2, 3], [4, 2]], 4, axis=0) + 0.08 * rng.standard_normal((12, 2))
        lines = [points[k:k + 4] for k in (0, 4, 8)]
        for line in lines:
            axis.plot(*line.T, "-o")
        axis.set(xlim=(0, 5), ylim=(0, 4))
        wanted = [labels.Label(f"sampler {k}", tuple(point), {"fontsize": 7, "color": "black"}) for k, point in enumerate(points)]
        labels.place(axis, wanted, lines)
        self.assertEqual([text.get_text() for text in axis.texts], [label.text for label in wanted])
        figure.canvas.draw()
        boxes = [Text.get_window_extent(text) for text in axis.texts]  # without the leader line
        spots = axis.transData.transform(points)
        for k, box in enumerate(boxes):
            self.assertFalse(any(box.contains(*spot) for spot in spots))
            self.assertFalse(any(box.overlaps(other) for other in boxes[k + 1:]))
            self.assertTrue(axis.bbox.x0 <= box.x0 and box.x1 <= axis.bbox.x1 and axis.bbox.y0 <= box.y0 and box.y1 <= axis.bbox.y1)
        self.assertTrue(any(text.arrow_patch for text in axis.texts))
        count = len(axis.texts)
        labels.place(axis, [labels.Label("no place" * 6, tuple(points[0]), {"fontsize": 20, "color": "black"}, needed=False)], lines)
        self.assertEqual(len(axis.texts), count)

    def test_names_of_twelve_curves(self):
        """Each name is next to the end of its line, in its colour and in the order of the ends, apart from the others, right of the panel and inside
        the figure, even in the narrowest one that has names there. The caption is below the panel."""
        bandit(self.folder, policies=TWELVE)
        for size in ((), ("--size", 7.6, 3)):
            figure = self.drawn("figure_vits", *size)
            axis = [axis for axis in figure.axes if axis.get_visible()][-1]
            figure.canvas.draw()
            names = [text for text in axis.texts if text.get_text() in TWELVE]
            self.assertEqual([text.get_text() for text in names], list(TWELVE))
            ends = [line.get_ydata()[-1] for line in axis.lines]
            boxes = [Text.get_window_extent(text) for text in names]
            order = np.argsort(ends, kind="stable")
            for low, high in zip(order[:-1], order[1:]):
                self.assertLess(boxes[low].y0 + boxes[low].y1, boxes[high].y0 + boxes[high].y1)
                self.assertFalse(boxes[low].overlaps(boxes[high]))
            for text, box, line in zip(names, boxes, axis.lines):
                self.assertEqual(text.get_color(), style.darker(line.get_color(), 0.1))
                self.assertGreater(box.x0, axis.bbox.x1)
                self.assertLessEqual(box.x1, figure.bbox.x1)
            self.assertLess(self.boxes(figure, [figure.texts[-1]])[0].y1, axis.get_tightbbox(figure.canvas.get_renderer()).y0)

    def test_places_apart(self):
        """Positions are as close to the wanted ones as possible: two that are too close move equally, one at the border pushes its neighbour."""
        for wanted, expected in (([5, 50], [5, 50]), ([50, 54], [47, 57]), ([54, 50], [57, 47]), ([1, 2], [0, 10]), ([99, 97, 3], [100, 90, 3])):
            np.testing.assert_allclose(labels.apart(wanted, 10, 0, 100), expected)


if __name__ == "__main__":
    main(Drawing)

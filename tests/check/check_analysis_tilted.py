#!/usr/bin/env python3
"""Tests of the figures of tilted transport in analysis/, with results files made here.

The expected numbers are computed here from the per-run values with plain NumPy. Ends with one line "N passed, N failed".
"""
import pathlib

import netCDF4
import numpy as np

from study_fixture import StudyTest, call, main, write_study

from thompson import store
import figure_tilted_ising
import figure_tilted_map
import inverse
import style

KAPPA, SNR = [1.5, 3.0, 12.0], [0.1, 0.5]
GRID = [{"problem.condition_number": kappa, "problem.snr": snr} for snr in SNR for kappa in KAPPA]
POLICIES = {"mala": ("mala", {}), "tilted": ("tilted", {})}
ISING = "study: x\nproblem:\n  theta: ising\n  arms: {arms}\n  dimension: 4\n  condition_number: 1\npolicies:\n"


def write(folder, settings=GRID, runs=10, concavity=True, **more):
    """A study with one error, its floor, and the eigenvalues, which rise to 1 and fall below 0 along the settings; returns them."""
    rng = np.random.default_rng(2)
    shape = (len(settings), len(POLICIES), runs, 1)
    curves = {"mode_weight_error": rng.uniform(0.1, 0.3, shape),
              "mode_weight_error_floor": np.broadcast_to(rng.uniform(0.02, 0.05, (len(settings), 1, runs, 1)), shape)}
    for shift, name in enumerate(figure_tilted_map.LINES if concavity else ()):
        values = np.linspace(1, -2, len(settings))[:, None, None, None] + 0.2 * shift + 0.01 * rng.standard_normal(shape)
        curves[name] = values
    write_study(folder, "sample_size", [2], curves, settings, POLICIES, **more)
    return curves


class Tilted(StudyTest):
    def printed(self, module):
        """Check that the files that the script reports exist."""
        status, out, err = call(module, self.folder)
        self.assertEqual((status, err), (0, ""))
        for path in out.split():
            self.assertGreater(pathlib.Path(path).stat().st_size, 5000)
        self.assertEqual(len(out.split()), 2)

    # ---- the map

    def test_cells(self):
        curves = write(self.folder)
        above = (curves["mode_weight_error"] - curves["mode_weight_error_floor"]).mean(axis=2)[:, :, 0]
        dataset = store.results(self.folder, "posterior")
        found = figure_tilted_map.excess(dataset, "mode_weight_error")
        np.testing.assert_allclose(found, above.T.reshape(2, len(SNR), len(KAPPA)), rtol=1e-9)
        figure = self.figure(figure_tilted_map.draw(dataset, "mode_weight_error"))
        panels = [axis for axis in figure.axes if axis.get_title()]
        self.assertEqual([axis.get_title() for axis in panels], ["mala", "tilted"])
        self.assertEqual(panels[1].texts[0].get_text(), f"{above[0, 1]:.2f}".replace("0.", "."))

    def test_grid_in_any_order(self):
        order = np.random.default_rng(0).permutation(len(GRID))
        write(self.folder, [GRID[k] for k in order])
        dataset = store.results(self.folder, "posterior")
        kappa, snr, _, _ = figure_tilted_map.axes_of(dataset)
        np.testing.assert_array_equal(kappa, KAPPA)
        np.testing.assert_array_equal(snr, SNR)
        place = figure_tilted_map.on_grid(dataset, np.arange(len(GRID)))
        np.testing.assert_array_equal(order[place.astype(int)].ravel(), np.arange(len(GRID)))

    def test_medians(self):
        curves = write(self.folder)
        found = figure_tilted_map.concavity(store.results(self.folder, "posterior"), "log_concavity")
        np.testing.assert_allclose(found.ravel(), np.median(curves["log_concavity"].reshape(len(GRID), -1), axis=1), rtol=1e-12)

    def test_lines_are_where_the_eigenvalue_is_zero(self):
        """Between two settings a border lies where linear interpolation puts it."""
        border = np.tile([1.0, -1.0, -3.0], (2, 1))
        axis = self.figure(style.plt.figure()).add_subplot()
        figure_tilted_map.draw_panel(axis, "", np.array(KAPPA), np.array(SNR), np.zeros((2, 3)),
                                     {"log_concavity": border}, 1.0)
        vertices = np.concatenate([path.vertices for one in axis.collections[1:] for path in one.get_paths()])
        np.testing.assert_allclose(vertices[:, 0], 0.5)

    def test_map_refusals(self):
        write(self.folder, concavity=False)
        self.refused(figure_tilted_map, "has not measured log_concavity")
        self.refused(figure_tilted_map, "no metric emd", "--metric", "emd")
        write(self.folder)
        self.refused(figure_tilted_map, "has no floor", "--metric", "log_concavity")
        write(self.folder, GRID[:5])
        self.refused(figure_tilted_map, "every value of problem.condition_number with every value of problem.snr")
        write(self.folder, [{"problem.snr": snr} for snr in SNR])
        self.refused(figure_tilted_map, "this one sweeps problem.snr")

    # ---- Ising models

    def ising(self, arms=3, settings=(0.5, 1.0, 2.0)):
        curves = write(self.folder, [{"problem.snr": snr} for snr in settings])
        with netCDF4.Dataset(self.folder / "results.nc", "a") as file:
            listed = file.config[file.config.index("policies:\n") + len("policies:\n"):]
            file.setncattr("config", ISING.format(arms=arms) + listed)
        return curves

    def test_ising(self):
        curves = self.ising(settings=(2.0, 0.5, 1.0))
        order = [1, 2, 0]
        dataset = store.results(self.folder, "posterior")
        l, found = inverse.spread(dataset)
        np.testing.assert_array_equal(l, [0.25, 1, 4])
        self.assertEqual(found.tolist(), order)
        values = curves["log_concavity"].reshape(3, -1)[order]
        for one, expected in zip(figure_tilted_ising.met(dataset, order),
                                 (np.median(values, axis=1), values.min(axis=1), values.max(axis=1))):
            np.testing.assert_allclose(one, expected, rtol=1e-12)
        errors = figure_tilted_ising.error_panel(dataset, "mode_weight_error", l, found)
        np.testing.assert_allclose(errors.means, curves["mode_weight_error"].mean(axis=2)[order, :, 0].T, rtol=1e-12)
        np.testing.assert_allclose(errors.floor[0], curves["mode_weight_error_floor"].mean(axis=2)[order, 0, 0], rtol=1e-12)
        self.assertEqual([figure_tilted_ising.worst(x) for x in (0, 1, 2)], [1, 0, -3])

    def test_ising_refusals(self):
        self.ising(arms=4)
        self.refused(figure_tilted_ising, "problem.arms below problem.dimension")
        write(self.folder)
        self.refused(figure_tilted_ising, "sweeps problem.snr alone")
        write(self.folder, [{"problem.snr": snr} for snr in SNR])
        self.refused(figure_tilted_ising, "problem.theta: ising")

    def test_entry_points(self):
        write(self.folder)
        self.printed(figure_tilted_map)
        self.ising()
        self.printed(figure_tilted_ising)


if __name__ == "__main__":
    main(Tilted)

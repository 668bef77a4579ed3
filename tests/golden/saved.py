#!/usr/bin/env python3
"""Files of posteriors and agents as this version writes them, and the draws that come next. Run once for each format (SAVED_FORMAT of
src/library/saved.c): the files are kept, so that later versions are required to open them (tests/program/program_package.py). Those of format 1 were
written by the loop below, in an earlier version; format 2 adds what ageing has left.

    PYTHONPATH=analysis THOMPSON_LIBRARY=build/release/src/library/libthompson.so tests/golden/saved.py
"""
import pathlib

import numpy as np

import thompson

FOLDER = pathlib.Path(__file__).parent

prior = thompson.Prior.from_mixture([0.25, 0.75], [[1, 0], [-1, 0.5]], [np.eye(2), [[0.5, 0.2], [0.2, 0.3]]])
x = np.array([[1, 0.5], [0.25, -1], [0, 2], [-1, 1]])
for name, likelihood, y in (("posterior", "gaussian", [1.5, 0.5, -2, 0.25]), ("clicks", "logistic", [1, 0, 0, 1])):
    one = thompson.Posterior(prior, likelihood=likelihood, seed=11)
    one.draw(3)
    one.forget()
    one.observe(x, y)
    one.choose(x)
    one.save(FOLDER / f"saved_1_{name}.nc")
    np.savetxt(FOLDER / f"saved_1_{name}.txt", one.draw(2))
    many = thompson.Agents(prior, 3, likelihood=likelihood, seed=12)
    many.observe([0, 0, 2, 2], x, y)
    many.choose([2, 0], x)
    name = "agents" if name == "posterior" else "agents_clicks"
    many.save(FOLDER / f"saved_1_{name}.nc")
    np.savetxt(FOLDER / f"saved_1_{name}.txt", many.draw(range(3))[:, 0])
named = thompson.Agents(prior, ["ann", "bo\u00eb"], seed=12)
named.observe(["ann", "bo\u00eb"], x[:2], [1.5, 0.5])
named.save(FOLDER / "saved_1_names.nc")
np.savetxt(FOLDER / "saved_1_names.txt", named.draw(["bo\u00eb", "ann"])[:, 0])
aged = thompson.Posterior(prior, seed=11, discount=0.5)
aged.observe(x[:2], [1.5, 0.5])
aged.age(1)
aged.observe(x[2:], [-2, 0.25])
aged.save(FOLDER / "saved_2_aged.nc")
np.savetxt(FOLDER / "saved_2_aged.txt", aged.draw(2))

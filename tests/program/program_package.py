#!/usr/bin/env python3
"""The Python package under hostile use: whatever a caller does wrong is an exception, never a crash of the interpreter or a wrong number.

TABLE lists what is tried. It runs in a separate process, which names each row before it is tried, so that a crash can be attributed."""

import concurrent.futures
import contextlib
import copy
import ctypes
import inspect
import json
import multiprocessing
import os
import pathlib
import pickle
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
import urllib.error
import urllib.request
import warnings

os.environ.setdefault("THOMPSON_LIBRARY", os.path.join(os.environ["THOMPSON_BUILD"], "src", "library", "libthompson.so"))

import netCDF4
import numpy as np

import program
import thompson

D = 3
X, Y = np.random.default_rng(1).standard_normal((6, D)), np.arange(6.0)
ARMS = np.random.default_rng(2).standard_normal((9, D))
# Each sampler that carries a state from round to round, and two that do not.
SAMPLERS = ("mixts", "localised", "smc", "lmc", "vts", "rvga")


def prior():
    return thompson.Prior.from_mixture([0.5, 0.5], np.eye(2, D), [np.eye(D)] * 2)


def agent(**arguments):
    return thompson.Posterior(prior(), **{"seed": 3, **arguments})


def agents(**arguments):
    return thompson.Agents(prior(), 5, **{"seed": 3, **arguments})


def assign(thing, name):
    setattr(thing, name, 1)


def raised_from_init(one):
    """A second __init__ must not take the prior away from under the first one."""
    try:
        one.__init__("nowhere.nc")
    finally:
        one.draw(2)


def of_gaussian(**arguments):
    return lambda: thompson.train(theta=X, family="gaussian", **arguments)


def with_file(thing, kind, change=lambda content: content):
    """Saves the thing and opens it as another kind, or after changing the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "saved.nc")
        thing.save(path)
        path.write_bytes(change(path.read_bytes()))
        return kind.open(path)


WRONG = (TypeError, ValueError, IndexError, AttributeError, ctypes.ArgumentError, thompson.Error)
TABLE = {
    # shapes
    "observe: y of shape (n, 1)": lambda: agent().observe(X, Y[:, None]),
    "observe: y of shape (2, 2)": lambda: agent().observe(X[:4], Y[:4].reshape(2, 2)),
    "observe: one y for all x": lambda: agent().observe(X, 1.0),
    "observe: x of three axes": lambda: agent().observe(X[None], Y),
    "observe: x of another dimension": lambda: agent().observe(X[:, :2], Y),
    "observe: ragged x": lambda: agent().observe([[1, 2, 3], [1, 2]], [1, 2]),
    "choose: one arm as a vector": lambda: agent().choose(ARMS[0]),
    "choose: no arms": lambda: agent().choose(np.empty((0, D))),
    "choose: a number": lambda: agent().choose(3.0),
    "from_mixture: too few means": lambda: thompson.Prior.from_mixture([0.5, 0.5], np.zeros((1, D)), [np.eye(D)]),
    "from_mixture: covariance of another size": lambda: thompson.Prior.from_mixture([1.0], np.zeros((1, D)), np.eye(2)),
    "train: theta of one axis": lambda: thompson.train(theta=X[0]),
    "train: no samples": lambda: thompson.train(theta=np.empty((0, D))),
    # types
    "observe: complex x": lambda: agent().observe(X + 1j, Y),
    "observe: complex y": lambda: agent().observe(X, Y + 0j),
    "observe: text": lambda: agent().observe([["1", "2", "3"]], ["1"]),
    "observe: None": lambda: agent().observe([None] * D, 1),
    "observe: times": lambda: agent().observe(np.full((1, D), np.datetime64("2020-01-01")), [1]),
    "observe: masked y": lambda: agent().observe(X, np.ma.masked_greater(Y, 3)),
    "choose: objects": lambda: agent().choose(np.full((2, D), object())),
    "draw: half a draw": lambda: agent().draw(1.5),
    "draw: True": lambda: agent().draw(True),
    "sampler: a number": lambda: agent(sampler=3),
    "sampler: a null byte": lambda: agent(sampler="mixts\0x"),
    "path: a null byte": lambda: prior().save("prior.nc\0x"),
    # values
    "observe: NaN": lambda: agent().observe([np.nan] * D, 1),
    "observe: infinite y": lambda: agent().observe(X[0], np.inf),
    "observe: an integer beyond doubles": lambda: agent().observe([10 ** 400] * D, 1),
    "observe: a reward that is no click": lambda: agent(likelihood="logistic").observe(X[0], 0.5),
    "choose: NaN": lambda: agent().choose(ARMS * np.nan),
    "draw: none": lambda: agent().draw(0),
    "draw: -1": lambda: agent().draw(-1),
    "draw: beyond int": lambda: agent().draw(2 ** 32 + 1),
    "sample: beyond int": lambda: prior().sample(2 ** 32 + 1),
    "seed: -1": lambda: agent(seed=-1),
    "seed: beyond 64 bits": lambda: agent(seed=2 ** 64 + 1),
    "seed: a real number": lambda: agent(seed=1.0),
    "sample: seed -1": lambda: prior().sample(1, seed=-1),
    "train: seed -1": of_gaussian(seed=-1),
    "train: seed beyond 64 bits": of_gaussian(seed=2 ** 64 + 1),
    "train: no ranks": of_gaussian(ranks=0),
    "noise: NaN": lambda: agent(noise=np.nan),
    "noise: negative": lambda: agent(noise=-1.0),
    "noise: of clicks": lambda: agent(likelihood="logistic", noise=0.5),
    "noise: of counts": lambda: agent(likelihood="poisson", noise=1.0),
    "option: another one in its value": lambda: agent(sampler="localised", particles="5,steps=9"),
    "option: another one in its name": lambda: agent(sampler="localised", **{"particles=5,steps": 9}),
    "option: a dictionary": lambda: agent(sampler="smc", particles={"a": 1}),
    "option: None": lambda: agent(sampler="smc", particles=None),
    "option: unknown": lambda: agent(nois=1),
    # agents
    "agents: an id beyond": lambda: agents().choose([0, 5], ARMS),
    "agents: a negative id": lambda: agents().draw([-1]),
    "agents: an id beyond int": lambda: agents().draw([2 ** 32]),
    "agents: real ids": lambda: agents().draw([0.0]),
    "agents: masked ids": lambda: agents().draw(np.ma.masked_equal([0, 1, 2], 1)),
    "agents: observe masked ids": lambda: agents().observe(np.ma.masked_equal([0, 1], 1), X[:2], Y[:2]),
    "train: masked tasks": lambda: thompson.train(logs=(np.ma.masked_equal([0, 1, 0, 1, 0, 1], 1), X, Y)),
    "from_mixture: masked means": lambda: thompson.Prior.from_mixture([1.0], np.ma.masked_equal(np.zeros((1, D)), 0), [np.eye(D)]),
    "p_value: memory that forgets clicks": lambda: (lambda one: (one.observe(X, [0, 1, 0, 1, 1, 0]), one.p_value()))(agent(likelihood="logistic", memory="filtered")),
    "p_value: memory that keeps some counts": lambda: (lambda one: (one.observe(X, Y), one.p_value()))(agent(likelihood="poisson", memory={"keep": 2})),
    "agents: one id as a number": lambda: agents().choose(0, ARMS),
    "agents: ids of two axes": lambda: agents().choose([[0, 1]], ARMS),
    "agents: too few rewards": lambda: agents().observe([0, 1], X[:2], Y[:1]),
    "agents: too few features": lambda: agents().observe([0, 1], X[:1], Y[:2]),
    "agents: arms for another number of agents": lambda: agents().choose([0, 1], np.zeros((3, 4, D))),
    "agents: NaN": lambda: agents().observe([0], X[:1] * np.nan, [1.0]),
    "agents: -1 of them": lambda: agents().add(-1),
    "agents: beyond int": lambda: agents().add(2 ** 31 - 1),
    "age: no number": lambda: agent(discount=0.9).age(None),
    "age: a real number": lambda: agent(discount=0.9).age(1.5),
    "age: NaN": lambda: agent(discount=0.9).age(np.nan),
    "age: -1": lambda: agent(discount=0.9).age(-1),
    "age: beyond int": lambda: agent(discount=0.9).age(2 ** 32),
    "age: True": lambda: agent(discount=0.9).age(True),
    "age: after __del__": lambda: (lambda one: (one.__del__(), one.age(1)))(agent(discount=0.9)),
    "age: a posterior without __init__": lambda: thompson.Posterior.__new__(thompson.Posterior).age(1),
    "age: clicks of which all rows are kept": lambda: agent(likelihood="logistic").age(1),
    "agents: age of an id beyond": lambda: agents(discount=0.9).age([5], 1),
    "agents: age of a negative id": lambda: agents(discount=0.9).age([-1], 1),
    "agents: age of real ids": lambda: agents(discount=0.9).age([0.5], 1),
    "agents: age of one id as a number": lambda: agents(discount=0.9).age(0, 1),
    "agents: ages, one for each": lambda: agents(discount=0.9).age([0, 1], [1, 2]),
    "agents: age after __del__": lambda: (lambda one: (one.__del__(), one.age([0])))(agents(discount=0.9)),
    "discount: NaN": lambda: agent(discount=np.nan),
    "discount: negative": lambda: agent(discount=-0.1),
    "discount: above 1": lambda: agents(discount=1.1),
    "agents: a sampler with a state": lambda: agents(sampler="smc"),
    "agents: after __del__": lambda: (lambda one: (one.__del__(), len(one)))(agents()),
    "run: resume and overwrite": lambda: thompson.run({"name": "a"}, resume=True, overwrite=True),
    # objects
    "assign noise": lambda: assign(agent(), "noise"),
    "assign prior": lambda: assign(agent(), "prior"),
    "assign a misspelt name": lambda: assign(agent(), "nois"),
    "assign to a prior": lambda: assign(prior(), "family"),
    "a prior of nothing": thompson.Prior,
    "a prior of a number": lambda: thompson.Prior(12345),
    "a posterior without __init__": lambda: thompson.Posterior.__new__(thompson.Posterior).draw(1),
    "a prior without __init__": lambda: thompson.Prior.__new__(thompson.Prior).sample(1),
    "a second __init__": lambda: raised_from_init(agent()),
    "a posterior of a posterior": lambda: thompson.Posterior(agent()),
    "after __del__": lambda: (lambda one: (one.__del__(), one.__del__(), one.draw(1)))(agent()),
    "a prior after __del__": lambda: (lambda one: (one.__del__(), one.__del__(), one.sample(1)))(prior()),
    "pickle of a damaged posterior": lambda: pickle.loads(pickle.dumps(agent()).replace(b"HDF", b"XYZ")),
    # files
    "open: no file": lambda: thompson.Posterior.open("nowhere.nc"),
    "open: a folder": lambda: thompson.Agents.open("."),
    "save: no folder": lambda: agents().save("nowhere/agents.nc"),
    "save: a number": lambda: agents().save(3),
    "save: after __del__": lambda: (lambda one: (one.__del__(), one.save("never.nc")))(agent()),
    "open: a prior": lambda: with_file(prior(), thompson.Posterior),
    "open: agents as a posterior": lambda: with_file(agents(), thompson.Posterior),
    "open: a posterior as agents": lambda: with_file(agent(), thompson.Agents),
    "open: cut off": lambda: with_file(agents(), thompson.Agents, lambda content: content[:-9]),
    "open: empty": lambda: with_file(agents(), thompson.Agents, lambda content: b""),
    "open: another letter in the name of the sampler": lambda: with_file(agents(), thompson.Agents, lambda content: content.replace(b"mixts", b"mixtz")),
    "pickle of a damaged prior": lambda: pickle.loads(pickle.dumps(prior()).replace(b"HDF", b"XYZ")),
}


def try_table():
    """Check that each row raises; prints its name before."""
    for name, action in TABLE.items():
        print(name, flush=True)
        try:
            got = action()
        except WRONG:
            continue
        sys.exit(f"nothing was raised, and {got!r} returned")
    print("all tried")


def in_a_process(code, **options):
    """A Python process that has this file as module `package`."""
    start = f"import runpy, sys, threading; sys.argv[0] = 'package'; package = runpy.run_path({__file__!r})\n"
    return subprocess.Popen([sys.executable, "-c", start + code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


class Hostile(unittest.TestCase):
    def test_table(self):
        with in_a_process("package['try_table']()") as process:
            said, errors = process.communicate(timeout=program.PATIENCE)
        self.assertEqual((process.returncode, said.splitlines()[-1:]), (0, ["all tried"]), f"row {said.splitlines()[-1:]}: {errors[-2000:]}")

    def test_a_refused_call_changes_nothing(self):
        one, other = agent(), agent()
        for action in (lambda: one.observe(X, Y[:, None]), lambda: one.observe(X * np.nan, Y), lambda: one.choose(ARMS[:, :2]), lambda: one.draw(0)):
            self.assertRaises(WRONG, action)
        self.assertEqual(len(one.observations[1]), 0)
        np.testing.assert_array_equal(one.draw(3), other.draw(3))

    def test_layouts(self):
        """Strides, byte orders, integers, lists, later changes by the caller: all give the numbers of a plain array."""
        want = agent()
        want.observe(X, Y)
        want = want.draw(4)
        for x, y in ((X[::-1][::-1], Y), (np.asfortranarray(X), np.repeat(Y, 2)[::2]), (np.repeat(X, 2, axis=1)[:, ::2], Y.astype(int)), (X.astype(">f8"), Y.tolist()),
                     (X.tolist(), np.ma.array(Y)), (X.copy(), Y.copy())):
            one = agent()
            one.observe(x, y)
            if x is not X and isinstance(x, np.ndarray) and x.base is None:
                x[:] = 0
            np.testing.assert_array_equal(one.draw(4), want)
            np.testing.assert_array_equal(one.observations[0], X)
        one = agent()
        for row, reward in zip(X, Y):
            one.observe(row, reward)
        np.testing.assert_array_equal(one.draw(4), want)


class Streams(unittest.TestCase):
    def test_agents_differ(self):
        """Without a seed no two draw the same: eight choices of nine arms are equal with probability 9^-7 at most if arms are equally good, and draws
        are never equal; the seed that the repr shows repeats them."""
        agents = [thompson.Posterior(prior()) for _ in range(8)]
        self.assertEqual(len({one.draw(1).tobytes() for one in agents}), 8)
        again = thompson.Posterior(agents[0].prior, seed=agents[0].seed)
        self.assertIn(f"seed {again.seed}", repr(again))
        again.draw(1)
        np.testing.assert_array_equal(agents[0].draw(2), again.draw(2))

    def test_forget_keeps_the_stream(self):
        """What is drawn after forget was not drawn before, even by samplers that draw as they observe; and a fresh agent that has drawn as often agrees."""
        for sampler in SAMPLERS:
            one = agent(sampler=sampler)
            seen = set()
            for _ in range(4):
                one.observe(X, Y)
                seen.add(one.draw(2).tobytes())
                one.forget()
                self.assertEqual(len(one.observations[1]), 0)
            self.assertEqual(len(seen), 4, sampler)
        one, other = agent(), agent()
        one.observe(X, Y)
        one.draw(1)
        one.forget()
        other.draw(1)
        np.testing.assert_array_equal(one.draw(3), other.draw(3))

    def test_copies(self):
        """A copy has what was observed and continues with the same numbers; then the two are independent."""
        for sampler in SAMPLERS:
            for how in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
                one = agent(sampler=sampler)
                one.observe(X[:4], Y[:4])
                one.draw(5)
                one.forget()
                one.observe(X[:2], Y[:2])
                one.draw(3)
                other = how(one)
                for each in (one, other):
                    each.observe(X[2], Y[2])
                np.testing.assert_array_equal(one.draw(6), other.draw(6), sampler)
                other.observe(X, Y)
                self.assertEqual((len(one.observations[1]), len(other.observations[1])), (3, 9))
                del one
                self.assertTrue(np.isfinite(other.draw(2)).all())

    def test_copies_of_priors(self):
        one = prior()
        for other in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
            np.testing.assert_array_equal(one.sample(5), other.sample(5))

    def test_defaults(self):
        """The default sampler is the one for the prior's family."""
        for likelihood, sampler in (("gaussian", "mixts"), ("logistic", "mixts")):
            self.assertEqual(thompson.Posterior(prior(), likelihood=likelihood).sampler, sampler)
        self.assertEqual(thompson.train(theta=np.random.default_rng(3).standard_normal((200, 2)), components=2).family, "mixture")
        quick = {"stages": 3, "training_steps": 20, "hidden": [4]}
        self.assertEqual(thompson.Posterior(thompson.train(theta=X, family="diffusion", **quick)).sampler, "diffts")


class Agents(unittest.TestCase):
    CONJUGATE = ("mixts", "exact", "localised", "diffts", "dps", "joint", "tilted", "mala", "smc_tempered", "twisted")
    CLICKS = ("mixts", "localised", "diffts", "smc_tempered")

    def test_at_once_or_one_by_one(self):
        """Whatever the order of ids, in one call or in many, uneven or with repeats: the same arms and draws to the bit, and agent 0 is the posterior
        of that seed. Each sampler, and both rules, which differ in what they need."""
        rng = np.random.default_rng(4)
        for sampler, likelihood, options in [(sampler, "gaussian", {"noise": 0.5}) for sampler in self.CONJUGATE] + [(sampler, "logistic", {}) for sampler in self.CLICKS] + [
                ("mixts", "gaussian", {"rule": "bayes_ucb", "horizon": 50}), ("mixts", "logistic", {"memory": "filtered"}), ("mixts", "logistic", {"memory": {"keep": 2}})]:
            with self.subTest(sampler=sampler, likelihood=likelihood, **options):
                made = dict(sampler=sampler, likelihood=likelihood, seed=3, **options)
                together, apart = (thompson.Agents(prior(), 90, **made) for _ in range(2))
                alone = thompson.Posterior(prior(), **made)
                for _ in range(3):
                    ids = rng.permutation(np.r_[rng.choice(90, 70, replace=False), 0, 0, 5])
                    arms = rng.standard_normal((len(ids), 5, D))
                    arm = together.choose(ids, arms)
                    self.assertEqual(arm.tolist(), [apart.choose([i], one)[0] for i, one in zip(ids, arms)])
                    x, y = arms[np.arange(len(ids)), arm], rng.integers(2, size=len(ids))
                    together.observe(ids, x, y)
                    for i, one, features, reward, chosen in zip(ids, arms, x, y, arm):
                        apart.observe([i], features[None], [reward])
                        if i == 0:
                            self.assertEqual(alone.choose(one), chosen)
                    for features, reward in zip(x[ids == 0], y[ids == 0]):
                        alone.observe(features, reward)
                theta = together.draw(range(90), 3)
                np.testing.assert_array_equal(theta, np.concatenate([apart.draw([i], 3) for i in range(90)]))
                np.testing.assert_array_equal(theta[0], alone.draw(3))

    def test_every_sampler(self):
        """Each sampler that a posterior with this prior accepts works for agents too, or is refused by a sentence that names the ones that do not."""
        with self.assertRaises(thompson.Error) as unknown:
            agent(sampler="nobody")
        names = re.search("allowed: (.*)", str(unknown.exception))[1].split(" | ")
        taken, refused, sentences = [], [], set()
        for name in names:
            try:
                agent(sampler=name)
            except thompson.Error:
                continue  # not for this prior
            try:
                some = agents(sampler=name)
            except thompson.Error as error:
                refused.append(name)
                sentences.add(str(error).split("one of ")[1])
                continue
            some.observe([0, 1], X[:2], Y[:2])
            self.assertEqual(some.choose([1, 0], ARMS).shape, (2,))
            taken.append(name)
        self.assertTrue({"mixts", "localised", "exact"} <= set(taken))
        self.assertTrue({"smc", "lmc", "vts"} <= set(refused))
        (sentence,) = sentences
        self.assertLessEqual(set(taken), set(sentence.split(", ")))
        self.assertFalse(set(refused) & set(sentence.split(", ")))

    def test_order(self):
        """With clicks too, where an approximation is computed step by step, an agent does not depend on which others were called before it, to the bit;
        nor does a posterior depend on whether it was opened or copied."""
        rng = np.random.default_rng(12)
        for options in ({}, {"memory": "filtered"}, {"rule": "bayes_ucb", "horizon": 50}, {"approximation": "laplace"}, {"guard": 0.3}):
            with self.subTest(**options):
                made = dict(likelihood="logistic", seed=1, **options)
                one, other, alone = thompson.Agents(prior(), 4, **made), thompson.Agents(prior(), 4, **made), thompson.Posterior(prior(), **made)
                for _ in range(5):
                    x, y, arms = rng.standard_normal((4, D)), rng.integers(2, size=4), rng.standard_normal((40, D))
                    for each in (one, other):
                        each.observe(range(4), x, y)
                    alone.observe(x[0], y[0])
                    forwards, backwards = ({i: (each.choose([i], arms)[0], each.draw([i]).tobytes()) for i in order} for each, order in ((one, (0, 1, 2, 3)), (other, (2, 0, 3, 1))))
                    self.assertEqual(forwards, backwards)
                    copied, opened = copy.copy(alone), through_file(alone)
                    first = [(each.choose(arms), each.draw().tobytes()) for each in (copied, opened, alone)]
                    self.assertEqual(len(set(first)), 1)

    def test_no_shared_clouds(self):
        """Agents that know the same draw differently, and a call draws nothing that an earlier one drew: smc_tempered, whose draws are particles."""
        many = thompson.Agents(prior(), 60, "smc_tempered", seed=1, particles=100)
        seen = []
        for _ in range(3):
            many.observe(range(60), np.broadcast_to(X[0], (60, D)), np.full(60, Y[0]))
            seen += list(many.draw(range(60))[:, 0]) + list(many.draw(range(60))[:, 0])
            many.forget(range(60))
        self.assertEqual(len({theta.tobytes() for theta in seen}), 360)

    def test_streams(self):
        """Agents with the same knowledge draw differently; the seed repeats everything; forget and add keep the streams."""
        one, other = (thompson.Agents(prior(), 50, seed=9) for _ in range(2))
        theta = one.draw(range(50))
        self.assertEqual(len({row.tobytes() for row in theta}), 50)
        np.testing.assert_array_equal(theta, other.draw(range(50)))
        self.assertFalse(np.array_equal(theta, thompson.Agents(prior(), 50).draw(range(50))))
        one.observe([7, 8], X[:2], Y[:2])
        one.forget([7])
        self.assertEqual(one.add(10), 50)
        self.assertEqual(len(one), 60)
        np.testing.assert_array_equal(one.draw([7], 4), other.draw([7], 4))
        self.assertFalse(np.array_equal(one.draw([8], 4), other.draw([8], 4)))
        self.assertEqual(one.draw([59]).shape, (1, 1, D))

    def test_posterior_is_exact(self):
        """Compared with NumPy: mean and covariance of 40 000 draws of an agent with a Gaussian prior, within five standard errors."""
        gaussian = thompson.Prior.from_mixture([1.0], np.ones((1, D)), [np.eye(D)])
        agents = thompson.Agents(gaussian, 3, noise=0.5, seed=1)
        agents.observe([1] * 6, X, Y)
        precision = np.eye(D) + X.T @ X / 0.25
        covariance = np.linalg.inv(precision)
        mean = covariance @ (np.ones(D) + X.T @ Y / 0.25)
        theta = agents.draw([1], 40000)[0]
        self.assertLess((abs(theta.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / 40000)).max(), 5)
        np.testing.assert_allclose(np.cov(theta.T), covariance, atol=5 * np.sqrt(2 / 40000) * covariance.diagonal().max())

    def test_age(self):
        """Evidence times discount ** rounds, in closed form; the same for a posterior, a copy and a saved one; filtered clicks that are old enough leave
        only the prior; samplers that keep more than evidence are refused."""
        made = thompson.Prior.from_mixture([1], [[0.5, 0]], [np.eye(2)])
        x, y = np.array([[1, 0.2], [0.3, 1], [1, 1]]), np.array([1.0, -1, 2])
        agents = thompson.Agents(made, 2, noise=0.5, seed=3, discount=0.9)
        one = thompson.Posterior(made, noise=0.5, seed=3, discount=0.9)
        for agent, each in ((agents, lambda k: ([0, 1][:1], x[k:k + 1], y[k:k + 1])), (one, lambda k: (x[k], y[k]))):
            agent.observe(*each(0))
            agent.observe(*each(1))
            agent.age(*([[0], 3] if agent is agents else [3]))
            agent.observe(*each(2))
        weight = np.array([0.9 ** 3, 0.9 ** 3, 1]) / 0.25
        precision = np.eye(2) + (x * weight[:, None]).T @ x
        mean = np.linalg.solve(precision, [0.5, 0] + (x * weight[:, None]).T @ y)
        with tempfile.TemporaryDirectory() as folder:
            one.save(os.path.join(folder, "one.nc"))
            opened = thompson.Posterior.open(os.path.join(folder, "one.nc"))
        copied = copy.copy(one)
        theta = agents.draw([0], 20000)[0]
        np.testing.assert_allclose(theta.mean(axis=0), mean, atol=5 * np.sqrt(np.linalg.inv(precision).max() / 20000))
        np.testing.assert_allclose(np.linalg.inv(np.cov(theta.T)), precision, rtol=0.1, atol=0.2)
        for other in (one, opened, copied):
            np.testing.assert_allclose(other.draw(20000), theta, atol=1e-9)
        clicks = {"likelihood": "logistic", "memory": "filtered", "seed": 4, "discount": 0.5}
        old, new = (thompson.Agents(made, 1, **clicks) for _ in range(2))
        for k in range(3):
            old.observe([0], x[k:k + 1], [1])
        self.assertGreater(np.abs(old.draw([0]) - new.draw([0])).max(), 1e-3)
        old.age([0], 60)
        np.testing.assert_allclose(old.draw([0]), new.draw([0]), atol=1e-9)
        for options in ({"likelihood": "logistic"}, {"sampler": "lmc"}):
            self.assertRaisesRegex(thompson.Error, "cannot age", thompson.Posterior(made, **options).age, 1)
        self.assertRaisesRegex(thompson.Error, "from 0 to 1", thompson.Agents, made, 1, discount=2)
        self.assertRaises((ValueError, TypeError, thompson.Error), agents.age, [0], -1)

    def test_memory(self):
        """10 000 agents, d = 10, a mixture of eight: 25 MB in addition to the prior, and no more after 20 rounds. Measured by the process itself."""
        code = """
import resource, numpy as np, thompson
d, rng = 10, np.random.default_rng(1)
prior = thompson.Prior.from_mixture(np.full(8, 1 / 8), rng.standard_normal((8, d)), [np.eye(d)] * 8)
thompson.Agents(prior, 10).choose(range(10), np.eye(d))
ids, arms = np.arange(10000), rng.standard_normal((10, d))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
agents = thompson.Agents(prior, 10000, noise=0.5)
for _ in range(20):
    agents.observe(ids, arms[agents.choose(ids, arms)], rng.standard_normal(10000))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""
        with in_a_process(code) as process:
            said, errors = process.communicate(timeout=program.PATIENCE)
        self.assertEqual(process.returncode, 0, errors)
        self.assertLess(float(said), 25)


def through_file(one):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved.nc")
        one.save(path)
        return type(one).open(path)


class Saved(unittest.TestCase):
    MADE = [(sampler, "gaussian", {"noise": 0.5}) for sampler in SAMPLERS] + [("mixts", "logistic", {}), ("localised", "poisson", {"steps": 4}),
            ("mixts", "logistic", {"memory": "filtered"}), ("mixts", "poisson", {"memory.keep": 4}), ("mixts", "gaussian", {"rule": "bayes_ucb", "horizon": 50, "floor": 0.01})]

    def test_posteriors(self):
        """An opened posterior has the arguments and the observations of the saved one, and continues with the same draws; also after `forget`, and empty."""
        for sampler, likelihood, options in self.MADE:
            with self.subTest(sampler=sampler, likelihood=likelihood, **options):
                one = thompson.Posterior(prior(), sampler, likelihood, seed=2 ** 53, **options)
                for step in range(4):
                    other = through_file(one)
                    for name in ("sampler", "likelihood", "rule", "seed", "noise", "fallbacks"):
                        self.assertEqual(getattr(one, name), getattr(other, name))
                    self.assertEqual({key: options[key] for key in options if key not in ("rule", "noise")}, other.options)
                    for mine, others in zip(one.observations, other.observations):
                        np.testing.assert_array_equal(mine, others)
                    for each in (one, other):
                        self.assertEqual(each.prior.family, "mixture")
                        each.observe(X, [0, 1, 1, 0, 1, 0])
                    np.testing.assert_array_equal(one.draw(3), other.draw(3))
                    self.assertEqual(one.choose(ARMS, propensity=True), other.choose(ARMS, propensity=True))
                    if step == 2:
                        one.forget()

    def test_agents(self):
        """The same for ten agents with different knowledge, one with none; by file, copy and pickle; and for no agents at all."""
        rng = np.random.default_rng(6)
        for sampler, likelihood, options in self.MADE:
            if sampler in ("smc", "lmc", "vts", "rvga"):
                continue
            with self.subTest(sampler=sampler, likelihood=likelihood, **options):
                one = thompson.Agents(prior(), 10, sampler, likelihood, seed=7, **options)
                for how in (through_file, copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
                    other = how(one)
                    self.assertEqual((len(other), repr(other), other.options, other.noise), (10, repr(one), {key: options[key] for key in options if key not in ("rule", "noise")}, one.noise))
                    ids = rng.permutation(np.r_[0:9, 0, 3])
                    arms, y = rng.standard_normal((len(ids), 5, D)), rng.integers(2, size=len(ids))
                    for each in (one, other):
                        each.observe(ids, arms[:, 0], y)
                    np.testing.assert_array_equal(one.choose(ids, arms), other.choose(ids, arms))
                    np.testing.assert_array_equal(one.draw(range(10), 2), other.draw(range(10), 2))
                    self.assertEqual(other.add(3), 10)
                    one.forget([4])
        none = through_file(thompson.Agents(prior(), 0))
        self.assertEqual((len(none), none.add(2), len(none)), (0, 0, 2))

    EXTREME = [("gaussian", {}), ("gaussian", {"noise": 1e-12}), ("gaussian", {"noise": 1e6, "discount": 0.5}), ("logistic", {}), ("logistic", {"memory": "filtered", "discount": 0.5}),
               ("logistic", {"memory": {"keep": 3}}), ("poisson", {}), ("poisson", {"memory": "filtered"}), ("poisson", {"memory": {"keep": 3}})]

    def test_what_is_accepted_opens(self):
        """Extreme observations, most of which are accepted: what is refused changes no byte of the file, and what was accepted opens again as the same bytes."""
        rng, accepted, refused = np.random.default_rng(54), 0, 0

        def number():
            return rng.choice([-1, 0, 1]) * 10.0 ** rng.uniform(-320, rng.choice([3, 25, 46]))

        with tempfile.TemporaryDirectory() as folder:
            first, second = pathlib.Path(folder, "first.nc"), pathlib.Path(folder, "second.nc")
            for likelihood, options in self.EXTREME * 4:
                one = thompson.Posterior(prior(), "mixts", likelihood, seed=1, **options) if rng.integers(2) else thompson.Agents(prior(), 3, "mixts", likelihood, seed=1, **options)
                alone = isinstance(one, thompson.Posterior)
                one.save(first)
                for _ in range(4):
                    x = [[number() for _ in range(D)] for _ in range(3)]
                    y = [{"gaussian": number(), "logistic": rng.integers(2), "poisson": np.floor(10 ** rng.uniform(0, 15.9))}[likelihood] for _ in range(3)]
                    before = first.read_bytes()
                    try:
                        one.observe(*([] if alone else [rng.integers(3, size=3)]), x, y)
                        accepted += 1
                        if "discount" in options:
                            one.age(*([] if alone else [[0, 2]]))
                    except thompson.Error:
                        refused += 1
                        one.save(first)
                        self.assertEqual(first.read_bytes(), before, (likelihood, options, x, y))
                    one.save(first)
                type(one).open(first).save(second)
                self.assertEqual(first.read_bytes(), second.read_bytes(), (likelihood, options))
        self.assertTrue(accepted > 60 and refused > 10, (accepted, refused))

    def test_refused_at_the_door(self):
        """The sentence names the observation and its value; a call with one such observation adds none, whichever chunk of agents it is in."""
        for likelihood, options, x, y, value in (("gaussian", {}, 1, 1e23, "1e\\+23"), ("gaussian", {"noise": 1e-12}, -1e11, 1, "-1e\\+11"),
                                                 ("poisson", {"memory": "filtered"}, 1e40, 3, "y = 3")):
            many, one = (thompson.Agents(prior(), 40, "mixts", likelihood, seed=1, **options), thompson.Posterior(prior(), "mixts", likelihood, seed=1, **options))
            features, rewards = np.zeros((41, D)), np.zeros(41)
            features[[0, 37], :] = [[1, 0, 0], [x, 0, 0]]
            rewards[37] = y
            before = [pickle.dumps(each) for each in (many, one)]
            self.assertRaisesRegex(thompson.Error, f"observation 37 .*{value}", many.observe, [*range(40), 5], features, rewards)
            self.assertRaisesRegex(thompson.Error, f"observation 37 .*{value}", one.observe, features, rewards)
            self.assertEqual(before, [pickle.dumps(each) for each in (many, one)])

    def test_prior_of_the_file(self):
        """A saved file is a prior file too."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "saved.nc")
            agents().save(path)
            np.testing.assert_array_equal(thompson.Prior.open(path).sample(4), prior().sample(4))

    def test_damage(self):
        """A byte that changes anywhere is detected, and so is a file that ends early."""
        one, rng = agents(), np.random.default_rng(9)
        one.observe([0, 1], X[:2], Y[:2])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "saved.nc")
            one.save(path)
            whole = path.read_bytes()
            for place in rng.integers(len(whole), size=60):
                path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << int(rng.integers(8))]) + whole[place + 1:])
                self.assertRaises(thompson.Error, thompson.Agents.open, path)
                path.write_bytes(whole[:place])
                self.assertRaises(thompson.Error, thompson.Agents.open, path)

    def test_earlier_versions(self):
        """Files that earlier versions wrote can always be opened, and continue with the draws that they would have given. tests/golden/saved.py wrote them.
        With clicks the random numbers are the same, but where the approximation's iterations end, and how wide candidates are drawn, is not promised: the
        numbers are recorded again when that changes, and the change log says so."""
        golden = pathlib.Path(os.environ["THOMPSON_SOURCE"], "tests", "golden")
        for name, precise in (("saved_1_posterior", 1e-6), ("saved_1_clicks", 1e-3), ("saved_2_aged", 1e-6)):
            one = thompson.Posterior.open(golden / f"{name}.nc")
            self.assertEqual((one.sampler, one.seed, len(one.observations[1])), ("mixts", 11, 4))
            np.testing.assert_allclose(one.draw(2), np.loadtxt(golden / f"{name}.txt"), rtol=precise)
        for name, precise in (("saved_1_agents", 1e-6), ("saved_1_agents_clicks", 1e-3)):
            many = thompson.Agents.open(golden / f"{name}.nc")
            self.assertEqual((len(many), many.seed), (3, 12))
            np.testing.assert_allclose(many.draw(range(3))[:, 0], np.loadtxt(golden / f"{name}.txt"), rtol=precise)
        named = thompson.Agents.open(golden / "saved_1_names.nc")
        self.assertEqual(named.names, ["ann", "bo\u00eb"])
        np.testing.assert_allclose(named.draw(named.names[::-1])[:, 0], np.loadtxt(golden / "saved_1_names.txt"), rtol=1e-6)

    def test_killed(self):
        """kill -9 at any moment of a loop of observe, choose and save: the file opens, has the state of the last completed save, or of the one under way,
        and equals, byte for byte, an agent that stopped there."""
        def work(path, said):
            rng, one = np.random.default_rng(3), thompson.Agents(prior(), 200, seed=3)
            for step in range(10**9):
                one.observe(range(200), rng.standard_normal((200, 3)), rng.standard_normal(200))
                one.choose(range(200), np.eye(3))
                one.save(path)
                said.send(step)

        fork = multiprocessing.get_context("fork")
        for wait in np.random.default_rng(5).uniform(0, 0.05, 8):
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "saved.nc")
                heard, said = fork.Pipe(duplex=False)
                with heard:
                    process = fork.Process(target=work, args=(path, said))
                    process.start()
                    said.close()
                    ended = heard.recv()
                    time.sleep(wait)
                    process.kill()
                    process.join()
                    with contextlib.suppress(EOFError):
                        while True:
                            ended = heard.recv()
                saved = thompson.Agents.open(path)
                world, again = np.random.default_rng(3), thompson.Agents(prior(), 200, seed=3)
                states = []
                for step in range(ended + 2):
                    again.observe(range(200), world.standard_normal((200, 3)), world.standard_normal(200))
                    again.choose(range(200), np.eye(3))
                    if step >= ended:
                        states.append(copy.copy(again).draw(range(200), 2).tobytes())
                self.assertIn(saved.draw(range(200), 2).tobytes(), states)


class Files(unittest.TestCase):
    """What saving does to files and to the process."""

    def test_disk_that_is_full(self):
        """A save that fails (files may not grow) leaves the old file, no descriptor and no temporary file; the next one works, and the process ends well."""
        code = """
import os, resource, tempfile, thompson
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "saved.nc")
    for one in (package["prior"](), package["agent"](), package["agents"]()):
        one.save(path)
        whole, open_files = open(path, "rb").read(), len(os.listdir("/proc/self/fd"))
        for size in (0, 100, 4096, len(whole) - 65):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            try:
                one.save(path)
                print("saved")
            except thompson.Error as error:
                assert error.code == 4 and "File too large" in str(error), error
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            assert open(path, "rb").read() == whole and os.listdir(folder) == ["saved.nc"]
            assert len(os.listdir("/proc/self/fd")) == open_files
        one.save(path)
"""
        with in_a_process(code) as process:
            said = process.communicate(timeout=program.PATIENCE)
        self.assertEqual((said[0], process.returncode), ("", 0), said[1])

    def test_permissions(self):
        """A file that only its owner may read stays so; a new one has what the umask leaves."""
        with tempfile.TemporaryDirectory() as folder:
            for one in (prior(), agent(), agents()):
                for mode in (0o600, 0o400, 0o660, 0o644):
                    path = pathlib.Path(folder, "saved.nc")
                    one.save(path)
                    path.chmod(mode)
                    one.save(path)
                    self.assertEqual(path.stat().st_mode & 0o7777, mode)
                    path.unlink()
            before = os.umask(0o027)
            try:
                one.save(path)
            finally:
                os.umask(before)
            self.assertEqual(path.stat().st_mode & 0o7777, 0o640)

    def test_leftovers(self):
        """What killed processes left for this file is removed by the next save; what belongs to another file or to a process that runs is not."""
        with tempfile.TemporaryDirectory() as folder, subprocess.Popen(["true"]) as ended:
            ended.wait()
            path, running = os.path.join(folder, "saved.nc"), os.getppid()
            stays = [f".saved.nc.{running}.0.tmp", f".other.nc.{ended.pid}.0.tmp", "saved.nc.bak", ".saved.nc.x.0.tmp"]
            for name in [*stays, f".saved.nc.{ended.pid}.0.tmp", f".saved.nc.{ended.pid}.17.tmp", f".saved.nc.{os.getpid()}.0.tmp"]:
                pathlib.Path(folder, name).touch()
            agents().save(path)
            self.assertEqual(sorted(os.listdir(folder)), sorted([*stays, "saved.nc"]))

    def test_appended(self):
        """Bytes after the end are detected in files of every kind."""
        for one, kind in ((prior(), thompson.Prior), (agent(), thompson.Posterior), (agents(), thompson.Agents)):
            for rest in (b"x", b"\0" * 64, b"thompson", b"x" * 72, b"x" * 73, b"x" * 5000, b"\0" * 4096):
                with self.assertRaisesRegex(thompson.Error, "damaged"):
                    with_file(one, kind, lambda content, rest=rest: content + rest)

    def test_names_that_are_not_utf_8(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.fsencode(folder) + b"/\xe4\xff.nc"
            self.assertRaisesRegex(thompson.Error, r"\\xe4\\xff.nc", thompson.Agents.open, path)
            for one in (prior(), agent(), agents()):
                for name in (path, os.fsdecode(path), pathlib.Path(os.fsdecode(path))):
                    one.save(name)
                    self.assertEqual(repr(type(one).open(name)), repr(one))


def of_locale(code):
    """What a process with a decimal comma prints; skips the test where there is no such locale."""
    with tempfile.TemporaryDirectory() as folder:
        if not shutil.which("localedef") or subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", os.path.join(folder, "de_DE.UTF-8")], capture_output=True, check=False).returncode:
            raise unittest.SkipTest("localedef cannot make de_DE.UTF-8")
        start = "import locale, numpy as np, thompson\nassert locale.setlocale(locale.LC_ALL, 'de_DE.UTF-8') and locale.str(0.5) == '0,5'\n"
        with in_a_process(start + code, env={**os.environ, "LOCPATH": folder}) as process:
            said = process.communicate(timeout=program.PATIENCE)
    return said, process.returncode


class Locale(unittest.TestCase):
    def test_decimal_comma(self):
        """Options, files and sentences are those of any other process."""
        code = """
one = package["agent"](noise=0.5, discount=0.25, floor=0.125, temper=1.5)
one.observe(package["X"], package["Y"])
one.age(1)
again = package["through_file"](one)
print(one.noise, again.noise, one.options, again.options, (one.draw(2) == again.draw(2)).all())
made = thompson.train(theta=np.random.default_rng(1).standard_normal((50, 2)), family="diffusion", stages=3, training_steps=5, hidden=[4], learning_rate=0.003)
print(package["through_file"](made).sample(1).tobytes().hex())
for wrong in (dict(noise=-0.5), dict(floor=0.75), dict(discount=1.5)):
    try:
        package["agent"](**wrong)
    except thompson.Error as error:
        print(error)
"""
        said = of_locale(code)
        with in_a_process("import numpy as np, thompson\n" + code) as process:
            self.assertEqual(said, (process.communicate(timeout=program.PATIENCE), 0))
        self.assertEqual(said[0][1], "")
        self.assertEqual(said[0][0].count("\n"), 5, said[0][0])


class Lives(unittest.TestCase):
    """Who lives as long as whom."""

    def test_prior_before_its_agents(self):
        """A prior may be closed before what uses it: by its finalizer, in a cycle, or by an error as it is learned. Memory that was freed is overwritten."""
        code = """
import copy, gc, numpy as np, thompson
made = thompson.train(theta=np.random.default_rng(1).standard_normal((50, 3)), family="diffusion", stages=3, training_steps=5, hidden=[4])
def use(one):
    if isinstance(one, thompson.Posterior):
        one.observe(package["X"], package["Y"]), one.choose(package["ARMS"]), one.p_value(), one.probabilities(package["ARMS"])
        return copy.copy(one).draw(3).tobytes() + one.draw(300).tobytes() + package["through_file"](one).draw(1).tobytes()
    one.observe([0, 1], package["X"][:2], package["Y"][:2]), one.choose([1], package["ARMS"]), one.add(3)
    return one.draw([0, 1, 5], 300).tobytes()
def learned(one):
    one.observe(range(5), package["X"][:5], package["Y"][:5])
    one.learn_prior()
    return use(one)
class Late:
    def __del__(self):
        said.append(use(self.one))
for sampler, kind in (("diffts", 0), ("localised", 0), ("mixts", 0), ("diffts", 1), ("mixts", 1), ("mixts", 2)):
    given = (lambda: package["through_file"](made)) if sampler == "diffts" else package["prior"]
    make = lambda: thompson.Posterior(given(), sampler, seed=1) if kind == 0 else thompson.Agents(given(), 5, sampler, seed=1)
    what = learned if kind == 2 else use
    want = what(make())
    one = make()
    one.prior.__del__()
    gc.collect()
    assert what(one) == want, (sampler, kind, "finalizer")
    if kind == 2:
        one.prior.__del__()
        one.draw([0, 1], 300)
        continue
    said, late = [], Late()
    late.one = make()
    late.prior, late.own = late.one.prior, late
    del late
    gc.collect()
    assert said == [want], (sampler, kind, "cycle")
print("well")
"""
        with in_a_process(code, env={**os.environ, "MALLOC_PERTURB_": "165"}) as process:
            said = process.communicate(timeout=program.PATIENCE)
        self.assertEqual((said[0], process.returncode), ("well\n", 0), said[1][-2000:])

    def test_interrupt_of_a_conversion(self):
        """KeyboardInterrupt stays what it is wherever it arrives: a thread interrupts thousands of short calls."""
        code = """
import _thread, threading, time
from thompson import _library as library
one, many, seen, ended = package["agent"](), package["agents"](), 0, False
def interrupt():
    while not ended:
        time.sleep(0.0003)
        if armed:
            _thread.interrupt_main()
armed = False
threading.Thread(target=interrupt, daemon=True).start()
until = 300
while seen < until:
    try:
        armed = True
        while True:
            len(many), one.noise, many.fallbacks, one.prior.dimension, one.fallbacks
    except KeyboardInterrupt:
        armed = False
        seen += 1
    try:
        time.sleep(0.001)
    except KeyboardInterrupt:
        pass
ended = True
print("interrupts", seen)
"""
        with in_a_process(code) as process:
            said = process.communicate(timeout=program.PATIENCE)
        self.assertEqual((said[0], process.returncode), ("interrupts 300\n", 0), said[1][-2000:])

    def test_conversions_are_made_in_c(self):
        """No type of an argument converts in Python, where an interrupt would become an ArgumentError."""
        from thompson import _library
        for _, *arguments in _library.FUNCTIONS.values():
            for each in arguments:
                self.assertNotIsInstance(inspect.getattr_static(each, "from_param", None), (classmethod, staticmethod), each)

    def test_interrupt_of_learn_prior(self):
        """Control-C ends it, and leaves the agents as they were; it would take minutes."""
        code = """
import numpy as np, thompson
rng, d, n = np.random.default_rng(1), 12, 20000
many = thompson.Agents(thompson.Prior.from_mixture([1], np.zeros((1, d)), [np.eye(d)]), n, seed=1)
for _ in range(3):
    many.observe(range(n), rng.standard_normal((n, d)), rng.standard_normal(n))
before, want = many.prior, package["copy"].copy(many).draw([3])
print("began", flush=True)
try:
    many.learn_prior()
except KeyboardInterrupt:
    print("interrupted", [thread.name for thread in threading.enumerate()], many.prior is before, (many.draw([3]) == want).all())
"""
        with in_a_process(code) as process:
            self.assertEqual(process.stdout.readline(), "began\n")
            interrupt = threading.Timer(0.4, process.send_signal, [signal.SIGINT])
            interrupt.start()
            said = process.communicate(timeout=program.PATIENCE)
        self.assertEqual((process.returncode, said[0]), (0, "interrupted ['MainThread'] True True\n"), said[1])


class Service(unittest.TestCase):
    """docs/service.py: what it learned survives kill -9, and so do its random numbers."""

    OPTIONS = {"likelihood": "logistic", "memory": "filtered", "floor": 0.01}

    def start(self, folder, timeout=1e6):
        process = subprocess.Popen(self.command(folder, "0", str(timeout)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        return process, f"http://127.0.0.1:{process.stdout.readline().strip()}"

    @staticmethod
    def command(*arguments):
        return [sys.executable, pathlib.Path(os.environ["THOMPSON_SOURCE"], "docs/service.py"), *arguments]

    def post(self, address, body):
        with urllib.request.urlopen(urllib.request.Request(address, body.encode()), timeout=program.PATIENCE) as answer:
            return json.load(answer)

    def ask(self, address, event):
        return self.post(address, json.dumps(event))

    def refused(self, address, body):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.post(address, body)
        with refused.exception as answer:
            return json.load(answer)["error"]

    def know_the_same(self, opened, again):
        mean, want = (np.mean(each.draw([0, 1], 4000), axis=1) for each in (opened, again))
        np.testing.assert_allclose(mean, want, atol=5 * np.sqrt(2 / 4000))

    def test_restart(self):
        with tempfile.TemporaryDirectory() as folder:
            prior().save(os.path.join(folder, "prior.nc"))
            process, address = self.start(folder)
            again = thompson.Agents(pathlib.Path(folder, "prior.nc"), 2, seed=thompson.Agents.open(pathlib.Path(folder, f"agents-{0:015d}.nc")).seed, **self.OPTIONS)
            choices = []
            for step in range(6):
                choices.append(self.ask(f"{address}/choose", {"user": "ab"[step % 2], "arms": ARMS.tolist()}))
                arm, p = again.choose([step % 2], ARMS, propensity=True)
                self.assertEqual((choices[-1]["arm"], choices[-1]["propensity"]), (arm[0], p[0]))
                if step < 4:
                    self.ask(f"{address}/observe", {"choice": choices[step]["choice"], "reward": step % 2})
                    again.observe([step % 2], ARMS[arm], [step % 2])
            for user in (None, True, 1.5, ["a"], {}):
                self.assertIn("a name or a whole number is needed", self.refused(f"{address}/choose", json.dumps({"user": user, "arms": ARMS.tolist()})))
            open_one = choices[4]["choice"]
            for body, said in ((json.dumps({"choice": choices[0]["choice"], "reward": 1}), "unknown or closed"), ("no JSON", "Expecting value"), ("[" * 100000, "recursion"),
                               (json.dumps({"choice": open_one, "reward": "much"}), "real numbers are needed"), (json.dumps({"choice": open_one, "reward": 1e23}), "0 or 1"),
                               (json.dumps({"choice": open_one, "reward": np.nan}), "NaN is not JSON"), ('{"reward": 1}', "'choice' is missing")):
                self.assertIn(said, self.refused(f"{address}/observe", body))
            process.kill()
            process.wait()
            with open(os.path.join(folder, "events.jsonl"), "ab") as log:
                log.write(b'{"user": 1, "ar')  # a line that was cut off
            process, address = self.start(folder)
            learned = [file.name for file in pathlib.Path(folder).glob("agents-*.nc")]
            self.assertEqual(len(learned), 1)
            self.assertEqual(int(learned[0][7:-3]), os.path.getsize(os.path.join(folder, "events.jsonl")))
            opened = thompson.Agents.open(pathlib.Path(folder, learned[0]))
            self.assertEqual(opened.names, ["a", "b"])
            self.know_the_same(opened, again)
            self.ask(f"{address}/observe", {"choice": open_one, "reward": 1})  # a choice that was open when it was killed

    def test_time_out(self):
        """Choices without an answer become events of reward 0, also those that were open at a kill; the exported log is what `study: replay` reads, with lists
        of arms of different lengths."""
        with tempfile.TemporaryDirectory() as folder:
            prior().save(os.path.join(folder, "prior.nc"))
            process, address = self.start(folder)
            choices = [self.ask(f"{address}/choose", {"user": user, "arms": ARMS.tolist()[:most]}) for user, most in zip("aabba", (9, 9, 2, 1, 9))]
            numbers = [choice["choice"] for choice in choices]
            self.ask(f"{address}/observe", {"choice": numbers[2], "reward": 1})
            process.kill()
            process.wait()
            process, address = self.start(folder, timeout=0.1)
            log, until = pathlib.Path(folder, "events.jsonl"), time.monotonic() + program.PATIENCE
            while log.read_text(encoding="utf-8").count("reward") < 5 and time.monotonic() < until:
                time.sleep(0.05)
            self.assertIn("unknown or closed", self.refused(f"{address}/observe", json.dumps({"choice": numbers[0], "reward": 1})))
            before = log.read_bytes() + b'{"choice": '
            log.write_bytes(before)  # the service is just writing
            subprocess.run(self.command(folder, os.path.join(folder, "events.nc")), check=True, stderr=subprocess.DEVNULL)
            self.assertEqual(log.read_bytes(), before)
            study = "name: value\nstudy: replay\nlikelihood: logistic\nruns: 1\nproblem: {family: logged, file: events.nc}\npolicies: [random, ts]\n"
            pathlib.Path(folder, "value.yaml").write_text(study, encoding="utf-8")
            subprocess.run([program.PROGRAM, "run", "value.yaml"], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with netCDF4.Dataset(os.path.join(folder, "events.nc")) as events:
                self.assertEqual((events["reward"][:].sum(), events["features"].shape), (1, (5, *ARMS.shape)))
                self.assertTrue(((events["propensity"][:] >= 0.01) & (events["propensity"][:] <= 1)).all())
                self.assertEqual(events["propensity"][3], 1)
                self.assertEqual(events["available"][:].sum(axis=1).tolist(), [len(choices[at]["arms"]) for at in (2, 0, 1, 3, 4)])  # in the order of their rewards

    def test_file_that_does_not_open(self):
        """The log alone is enough, also where it has lines that cannot be read and an observation that an earlier version accepted."""
        with tempfile.TemporaryDirectory() as folder:
            prior().save(os.path.join(folder, "prior.nc"))
            lines = [line for i, y in enumerate((1, 1, 0, 1e44)) for line in ({"choice": i, "user": "ab"[i % 2], "arms": ARMS.tolist(), "arm": 1, "propensity": 1, "time": time.time()},
                                                                        {"choice": i, "reward": y})]
            damaged = 'no JSON\n5\n{"choice": 1e9, "reward": 1}\n'
            pathlib.Path(folder, "events.jsonl").write_text(damaged + "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
            saved = pathlib.Path(folder, f"agents-{1:015d}.nc")
            saved.write_bytes(b"damaged")
            self.start(folder)
            self.assertTrue(saved.with_suffix(".bad").exists())
            (opened,), again = pathlib.Path(folder).glob("agents-*.nc"), thompson.Agents(prior(), 2, **self.OPTIONS)
            again.observe([0, 1, 0], ARMS[[1, 1, 1]], [1, 1, 0])
            self.know_the_same(thompson.Agents.open(opened), again)


class Denoisers(unittest.TestCase):
    """Prior.from_denoiser with the denoiser of a Gaussian and of a mixture, in closed form in NumPy."""

    MEAN, COVARIANCE = np.array([[1.0, 0.0], [-1.0, 0.5]]), np.stack([np.eye(2) * 0.2, np.array([[0.3, 0.1], [0.1, 0.2]])])

    def gaussian(self, b, precision):
        covariance = np.linalg.inv(np.linalg.inv(self.COVARIANCE[1]) + precision)
        return np.einsum("mij,mj->mi", covariance, np.linalg.inv(self.COVARIANCE[1]) @ self.MEAN[1] + b), covariance

    def mixture(self, b, precision):
        inverse = np.linalg.inv(self.COVARIANCE)
        covariance = np.linalg.inv(inverse + precision[:, None])                                # [m, c, d, d]
        vector = np.einsum("cij,cj->ci", inverse, self.MEAN) + b[:, None]
        mean = np.einsum("mcij,mcj->mci", covariance, vector)
        log_weight = 0.5 * (np.einsum("mci,mci->mc", mean, vector) + np.linalg.slogdet(covariance)[1] - np.linalg.slogdet(self.COVARIANCE)[1]
                            - np.einsum("ci,cij,cj->c", self.MEAN, inverse, self.MEAN))
        weight = np.exp(log_weight - log_weight.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        whole = np.einsum("mc,mci->mi", weight, mean)
        apart = mean - whole[:, None]
        return whole, np.einsum("mc,mcij->mij", weight, covariance) + np.einsum("mc,mci,mcj->mij", weight, apart, apart)

    def test_gaussian_is_exact(self):
        """Mean and covariance of 20 000 posterior draws, and of samples of the prior, within five standard errors, for any number of steps."""
        one = thompson.Posterior(thompson.Prior.from_denoiser(self.gaussian, 2), noise=0.5, seed=1, steps=3)
        self.assertEqual((one.sampler, one.prior.family), ("localised", "given"))
        x, y = X[:, :2], Y / 5
        one.observe(x, y)
        inverse = np.linalg.inv(self.COVARIANCE[1])
        covariance = np.linalg.inv(inverse + x.T @ x / 0.25)
        for theta, mean, spread in ((one.draw(20000), covariance @ (inverse @ self.MEAN[1] + x.T @ y / 0.25), covariance),
                                    (one.prior.sample(20000), self.MEAN[1], self.COVARIANCE[1])):
            self.assertLess((abs(theta.mean(axis=0) - mean) / np.sqrt(np.diag(spread) / 20000)).max(), 5)
            np.testing.assert_allclose(np.cov(theta.T), spread, atol=5 * np.sqrt(2 / 20000) * spread.diagonal().max())
        self.assertEqual(one.fallbacks, 0)

    def test_mixture(self):
        """Draws equal those of the same mixture in closed form, by the same sampler and seed, up to rounding; agents and clicks too."""
        closed = thompson.Prior.from_mixture([0.5, 0.5], self.MEAN, self.COVARIANCE)
        given = thompson.Prior.from_denoiser(self.mixture, 2)
        for likelihood in ("gaussian", "logistic"):
            one, other = (thompson.Posterior(each, "localised", likelihood, seed=2) for each in (given, closed))
            for each in (one, other):
                each.observe(X[:, :2], [0, 1, 1, 0, 1, 0])
            mine, others = one.draw(4000), other.draw(4000)
            np.testing.assert_allclose(mine.mean(axis=0), others.mean(axis=0), atol=0.1)
            np.testing.assert_allclose(np.cov(mine.T), np.cov(others.T), atol=0.1)
        agents = thompson.Agents(given, 3, seed=1)
        agents.observe([0, 2], X[:2, :2], Y[:2])
        self.assertEqual(agents.choose([0, 1, 2], X[:, :2]).shape, (3,))

    def test_what_goes_wrong(self):
        """What the function raises reaches the caller, also Control-C; wrong shapes are refused; results that are not finite are counted; no file is written."""
        def sometimes(b, precision):
            if answers:
                return answers[0](b, precision)
            raise KeyboardInterrupt("now")

        answers = []
        given = thompson.Prior.from_denoiser(sometimes, 2)
        self.assertRaises(KeyboardInterrupt, thompson.Posterior, given)  # which calls for its first moments
        self.assertRaises(KeyboardInterrupt, given.sample, 3)
        answers.append(self.mixture)
        one, many = thompson.Posterior(given), thompson.Agents(given, 2)
        one.draw(3)
        answers[0] = lambda b, precision: (b[:, :1], precision)
        self.assertRaises(ValueError, one.draw, 3)
        self.assertRaises(ValueError, many.choose, [0, 1], X[:, :2])
        answers[0] = self.mixture
        self.assertTrue(np.isfinite(one.draw(3)).all())
        self.assertRaises(TypeError, thompson.Prior.from_denoiser, 3, 2)
        one = thompson.Posterior(thompson.Prior.from_denoiser(lambda b, m: (b * np.nan, m), 2))
        self.assertTrue(np.isfinite(one.draw(3)).all())
        self.assertGreater(one.fallbacks, 0)
        for thing in (one, one.prior):
            with self.assertRaisesRegex(thompson.Error, "cannot be saved to a file"):
                pickle.dumps(thing)


class LearnPrior(unittest.TestCase):
    """Agents learn their prior from what all of them have observed, and continue with it."""
    MODES = np.array([[1.5, -1.5], [-1.5, 1.5]])
    START = thompson.Prior.from_mixture([1.0], np.zeros((1, 2)), np.eye(2)[None])

    def agents(self, n=300, rounds=20, likelihood="gaussian", prior=START, **options):
        rng = np.random.default_rng(1)
        theta = self.MODES[rng.integers(2, size=n)] + 0.2 * rng.normal(size=(n, 2))
        noise = {"noise": 0.5} if likelihood == "gaussian" else {}
        made = thompson.Agents(prior, n, sampler="mixts", likelihood=likelihood, seed=1, **noise, **options)
        seen = []
        for _ in range(rounds):
            x = rng.normal(size=(n, 2))
            mean = (x * theta).sum(axis=1)
            y = mean + 0.5 * rng.normal(size=n) if likelihood == "gaussian" else (rng.uniform(size=n) < 1 / (1 + np.exp(-mean))).astype(float)
            made.observe(np.arange(n), x, y)
            seen.append((x, y))
        return made, seen

    def test_modes(self):
        """Two modes of standard deviation 0.2, 300 agents: means within 5 standard errors of 150 theta known to 0.5 / sqrt(20), and an agent that has seen
        nothing draws from them. As for Gaussian rewards, so roughly for clicks of 100 agents, 40 of which say less."""
        for likelihood, n, rounds, error in (("gaussian", 300, 20, 5 * np.hypot(0.2, 0.5 / np.sqrt(20)) / np.sqrt(150)), ("logistic", 100, 40, 0.4)):
            agents, _ = self.agents(n, rounds, likelihood)
            prior = agents.learn_prior()
            self.assertEqual((prior.family, repr(agents).count(repr(prior))), ("mixture", 1))
            drawn = prior.sample(4000, seed=2)
            near = drawn[np.abs(drawn - self.MODES[0]).max(axis=1) < 1]
            self.assertLess(np.abs(near.mean(axis=0) - self.MODES[0]).max(), error)
            self.assertAlmostEqual(len(near) / 4000, 0.5, delta=0.1 if likelihood == "gaussian" else 0.15)
            fresh = agents.draw([agents.add(1)], 400)[0]
            self.assertGreater((np.abs(fresh[:, 0]) > 0.6).mean(), 0.85)

    def test_gaussian_evidence(self):
        """With Gaussian rewards agents keep evidence, whatever `memory` says, so the priors are the same to the last digit."""
        full, filtered = (self.agents(60, 8, **options)[0] for options in ({}, {"memory": "filtered"}))
        np.testing.assert_array_equal(full.learn_prior().sample(500, seed=2), filtered.learn_prior().sample(500, seed=2))

    def test_filtered_clicks(self):
        """Clicks that were forgotten, under a prior of two components, one with the last five clicks kept: the learned prior, and what agents then believe, are
        close to those of agents which keep every click. Over 100 agents with 30 clicks the means of the absolute theta and the share of a mode agree within
        0.1, the agents' posterior means within a fifth of a standard deviation (root mean square). A saved file opens, and agents continue to learn."""
        start = thompson.Prior.from_mixture([0.5, 0.5], np.array([[0.5, 0.5], [-0.5, -0.5]]), np.tile(2 * np.eye(2), (2, 1, 1)))
        full, seen = self.agents(100, 30, "logistic", prior=start)
        exact = full.learn_prior().sample(4000, seed=2)
        ids = np.arange(len(full))
        mean, sd = (getattr(full.draw(ids, 200), name)(axis=1) for name in ("mean", "std"))
        for memory in ("filtered", {"keep": 5}):
            with self.subTest(memory=memory), tempfile.TemporaryDirectory() as folder:
                forgetful, _ = self.agents(100, 30, "logistic", prior=start, memory=memory)
                drawn = forgetful.learn_prior().sample(4000, seed=2)
                np.testing.assert_allclose(np.abs(drawn).mean(axis=0), np.abs(exact).mean(axis=0), atol=0.1)
                self.assertAlmostEqual((drawn[:, 0] > 0).mean(), (exact[:, 0] > 0).mean(), delta=0.1)
                apart = (forgetful.draw(ids, 200).mean(axis=1) - mean) / sd
                self.assertLess(np.sqrt((apart**2).mean()), 0.2 + 2 * np.sqrt(2 / 200))
                forgetful.save(f"{folder}/agents.nc")
                opened = thompson.Agents.open(f"{folder}/agents.nc")
                np.testing.assert_array_equal(forgetful.draw(ids, 2), opened.draw(ids, 2))
                forgetful.observe(ids, *seen[0])
                forgetful.learn_prior()
                self.assertEqual(forgetful.fallbacks, 0)

    def test_nothing_is_lost(self):
        """An agent's posterior is that of its observations under the new prior: equal in mean and covariance, over 4 000 draws, to a posterior made from both;
        a saved file opens with the learned prior, and draws the same; learning again works."""
        agents, seen = self.agents()
        prior = agents.learn_prior()
        one = thompson.Posterior(prior, sampler="mixts", noise=0.5, seed=3)
        one.observe(np.stack([x[7] for x, _ in seen]), np.array([y[7] for _, y in seen]))
        a, b = agents.draw([7], 4000)[0], one.draw(4000)
        sd = b.std(axis=0)
        self.assertLess((np.abs(a.mean(axis=0) - b.mean(axis=0)) / sd).max(), 5 * np.sqrt(2 / 4000))
        np.testing.assert_allclose(a.std(axis=0) / sd, 1, atol=5 / np.sqrt(4000))
        with tempfile.TemporaryDirectory() as folder:
            agents.save(f"{folder}/agents.nc")
            opened = thompson.Agents.open(f"{folder}/agents.nc")
            np.testing.assert_array_equal(agents.draw(range(20), 2), opened.draw(range(20), 2))
        again = agents.learn_prior().sample(4000, seed=2)
        np.testing.assert_allclose(np.abs(again).mean(axis=0), np.abs(prior.sample(4000, seed=2)).mean(axis=0), atol=0.05)

    def test_refused(self):
        """A refused call leaves the agents as they were."""
        few, _ = self.agents(n=3)
        narrow = thompson.Agents(self.START, 8, sampler="ts", noise=0.5, seed=1)
        narrow.observe(range(8), np.ones((8, 2)), np.arange(8.0))
        given = thompson.Agents(thompson.Prior.from_denoiser(lambda b, m: (b, np.linalg.inv(m + np.eye(2))), 2), 8, noise=0.5)
        for agents, part in ((few, "3 of 3 agents"), (narrow, "sampler ts needs a Gaussian prior"), (given, "mixture")):
            before = agents.draw([0], 3)
            with self.assertRaisesRegex(thompson.Error, part):
                agents.learn_prior()
            self.assertFalse(np.array_equal(before, agents.draw([0], 3)))
        with self.assertRaises(ctypes.ArgumentError):
            few.__del__()
            few.learn_prior()


class ScoreNetworks(unittest.TestCase):
    """Prior.from_score_network with the denoised mean of a mixture, in closed form in NumPy: two components that differ in their first coordinate, with mean
    0 and variance 1 overall, so that the chain of the same mixture is not changed by standardisation."""

    APART, SCHEDULE = 0.9, 0.97 ** np.arange(1, 101)

    def mean(self, x, t):
        a, variance = self.SCHEDULE[t - 1], np.ones(x.shape[1])
        variance[0] -= self.APART ** 2
        gain = np.sqrt(a) * variance / (a * variance + 1 - a)
        centre = np.zeros_like(x)
        centre[:, 0] = self.APART * np.tanh(np.sqrt(a) * self.APART * x[:, 0] / (a * variance[0] + 1 - a))
        return centre + gain * (x - np.sqrt(a) * centre)

    def closed(self, d):
        centre, covariance = np.zeros((2, d)), np.eye(d)
        centre[:, 0] = self.APART, -self.APART
        covariance[0, 0] -= self.APART ** 2
        return thompson.Prior.from_mixture([0.5, 0.5], centre, np.stack([covariance, covariance]))

    def test_mixture(self):
        """Samples equal those of the mixture's own chain, seed by seed, up to rounding; posterior draws agree up to the central differences, whose error is
        1e-5 per stage and is carried through a hundred stages. Many draws under Gaussian rewards use their normals in other coordinates: means agree within five
        standard errors, and deviations within a tenth, which is four of theirs."""
        for d in (2, 5):
            given, closed = thompson.Prior.from_score_network(self.mean, d), self.closed(d)
            self.assertEqual((given.family, given.dimension), ("score_network", d))
            np.testing.assert_allclose(thompson.Prior.from_score_network(self.mean, d, self.SCHEDULE).sample(200), given.sample(200))
            x = np.random.default_rng(3).normal(size=(4, d))
            for sampler, likelihood in (("diffts", "gaussian"), ("diffts", "logistic")):
                with self.subTest(f"{sampler} {likelihood} {d}"):
                    one, other = (thompson.Posterior(each, sampler, likelihood, seed=2) for each in (given, closed))
                    for each in (one, other):
                        each.observe(x, [0, 1, 1, 0])
                    mine, others = one.draw(50), other.draw(50)
                    self.assertEqual(one.fallbacks, 0)
                    np.testing.assert_allclose(mine, others, atol=0.01)
                    self.assertGreater(abs(mine - given.sample(50)).max(), 0.1)
                    mine, others = one.draw(2000), other.draw(2000)
                    np.testing.assert_array_less(abs(mine.mean(0) - others.mean(0)), 5 * np.sqrt(2 / 2000) * others.std(0))
                    np.testing.assert_allclose(mine.std(0), others.std(0), rtol=0.1)
        self.assertEqual(thompson.Posterior(given).sampler, "diffts")

    def test_tilted(self):
        """`tilted` has a density for the mixture but not for a function, so its draws differ: mean and spread are those of exact draws, within 0.1;
        four standard errors of 4 000 draws are 0.09."""
        x = np.random.default_rng(3).normal(size=(4, 3))
        mine, exact = (thompson.Posterior(prior, sampler, seed=2)
                       for prior, sampler in ((thompson.Prior.from_score_network(self.mean, 3), "tilted"), (self.closed(3), "mixts")))
        for each in (mine, exact):
            each.observe(x, [0, 1, 1, 0])
        mine, exact = mine.draw(4000), exact.draw(4000)
        np.testing.assert_allclose(mine.mean(axis=0), exact.mean(axis=0), atol=0.1)
        np.testing.assert_allclose(np.cov(mine.T), np.cov(exact.T), atol=0.1)

    def test_twisted(self):
        """Many draws of a posterior are from one cloud, also of one that was made to choose by: mean and spread are those of exact draws, within 0.15; four standard
        errors of 1 000 draws, and of a cloud of 2 000 that is weighted, are 0.13 each."""
        x = np.random.default_rng(3).normal(size=(2, 3))
        mine, exact = (thompson.Posterior(self.closed(3), sampler, seed=2) for sampler in ("twisted", "mixts"))
        for each in (mine, exact):
            each.observe(x, [0, 1])
            each.choose(x)
        mine, exact = mine.draw(1000), exact.draw(1000)
        np.testing.assert_allclose(mine.mean(axis=0), exact.mean(axis=0), atol=0.15)
        np.testing.assert_allclose(mine.std(axis=0), exact.std(axis=0), atol=0.15)

    def test_what_goes_wrong(self):
        """What the function raises reaches the caller and it is not called again; wrong shapes and schedules are refused; values that are not finite are counted; no file."""
        def sometimes(x, t):
            calls.append(t)
            return answers[0](x, t)

        def interrupted(x, t):
            raise KeyboardInterrupt("now")

        calls, answers = [], [self.mean]
        given = thompson.Prior.from_score_network(sometimes, 2)
        one, many = thompson.Posterior(given, noise=0.5, seed=1), thompson.Agents(given, 2, seed=1)
        one.observe(X[:, :2], Y)
        one.draw(3)
        self.assertEqual((min(calls), max(calls)), (1, 100))
        for bad, error in ((interrupted, KeyboardInterrupt), (lambda x, t: x[:, :1], ValueError), (lambda x, t: None, (TypeError, ValueError))):
            answers[0] = bad
            for call in (lambda: one.draw(3), lambda: given.sample(3), lambda: many.choose([0, 1], X[:, :2])):
                calls.clear()
                self.assertRaises(error, call)
                self.assertEqual(len(calls), 1)
        answers[0] = self.mean
        self.assertTrue(np.isfinite(one.draw(3)).all())
        before = one.fallbacks
        answers[0] = lambda x, t: x * np.nan
        self.assertTrue(np.isfinite(one.draw(3)).all())
        self.assertGreater(one.fallbacks, before)
        for schedule in ([], [0.5, 0.6], [1.0, 0.5], [0.5, 0.0], [0.5, np.nan], [[0.5]]):
            with self.subTest(schedule):
                self.assertRaises((ValueError, thompson.Error), thompson.Prior.from_score_network, self.mean, 2, schedule)
        self.assertRaises(TypeError, thompson.Prior.from_score_network, 3, 2)
        self.assertRaises(thompson.Error, thompson.Posterior, given, "localised")
        for thing in (one, given):
            with self.assertRaisesRegex(thompson.Error, "cannot be saved to a file"):
                pickle.dumps(thing)


class Public(unittest.TestCase):
    def test_documented(self):
        """Everything public has readable types, a sentence, and a repr of one line."""
        import xarray  # named in types, but not imported by the package until it is used
        for kind in (thompson.Prior, thompson.Posterior, thompson.Agents):
            for name, member in inspect.getmembers(kind):
                if name.startswith("_") and name != "__init__" or name == "__init__" and kind is thompson.Prior:
                    continue
                self.assertTrue(inspect.getdoc(member), (kind, name))
                if inspect.isroutine(member):
                    types = typing.get_type_hints(member, localns={"xr": xarray})
                    missing = set(inspect.signature(member).parameters) - set(types) - {"self", "options"}
                    self.assertEqual((missing, "return" in types), (set(), True), (kind, name))
                for line in re.findall(r"^ *ids : .*", inspect.getdoc(member), re.MULTILINE):
                    self.assertIn("of int or str", line, (kind, name))  # agents may have names
        for function in (thompson.train, thompson.run, thompson.results, thompson.problems, thompson.score, thompson.version):
            self.assertLessEqual(set(inspect.signature(function).parameters) - {"options", "keys"}, set(typing.get_type_hints(function, localns={"xr": xarray})), function)
        for thing in (prior(), agent(), agents(), thompson.problems("cross")):
            self.assertLess(len(repr(thing)), 300)
            self.assertNotIn("\n", repr(thing))

    def test_p_value(self):
        """The p-value of `thompson sample` with the same seed; none without observations, and small if the prior is wrong."""
        one = agent(noise=0.5)
        self.assertRaises(thompson.Error, one.p_value)
        one.observe(X, Y)
        with tempfile.TemporaryDirectory() as folder:
            path = [os.path.join(folder, name) for name in ("prior.nc", "history.csv", "draws.nc")]
            one.prior.save(path[0])
            np.savetxt(path[1], np.c_[X, Y], delimiter=",", header="x1,x2,x3,y", comments="", fmt="%.17g")
            said = program.thompson("sample", "--prior", path[0], "--data", path[1], "--sampler", "mixts", "--likelihood", "gaussian", "--noise", "0.5", "--seed", "3", "-n", "2",
                                    "-o", path[2])
            self.assertIn(f"p-value of the history under the prior {one.p_value():.3g},", said.stdout)
        one.observe(X, 20 * Y)
        self.assertLess(one.p_value(), 0.05)

    def test_p_value_after_age(self):
        """Uniform if the prior is right, however the observations aged (Kolmogorov-Smirnov distance of 300 posteriors, below its upper 0.1% quantile); the same
        from a copy and from a file."""
        made, rng, count = thompson.Prior.from_mixture([1], np.zeros((1, 4)), [0.3 * np.eye(4)]), np.random.default_rng(3), 300
        theta, p = made.sample(count, seed=5), []
        for k in range(count):
            one = thompson.Posterior(made, seed=k, noise=2.0, discount=0.3)
            for rows, rounds in ((12, 2), (6, 1), (3, 0)):
                x = rng.standard_normal((rows, 4))
                one.observe(x, x @ theta[k] + 2 * rng.standard_normal(rows))
                one.age(rounds)
            p.append(one.p_value())
            if k < 3:
                self.assertEqual({p[-1]}, {copy.copy(one).p_value(), through_file(one).p_value()})
        p = np.sort(p)
        self.assertLess(max(np.max(np.arange(1, count + 1) / count - p), np.max(p - np.arange(count) / count)), 1.95 / np.sqrt(count) + 1e-3)

    def test_silence(self):
        """xarray reads and writes files after this package has, and HDF5 prints nothing about what it fails to find."""
        code = """
import os, tempfile, xarray as xr
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "prior.nc")
    package["prior"]().save(path)
    xr.load_dataset(path)
"""
        with in_a_process(code) as process:
            self.assertEqual((process.communicate(timeout=program.PATIENCE), process.returncode), (("", ""), 0))


class Propensities(unittest.TestCase):
    def test_frequencies(self):
        """10 000 agents with the same knowledge choose once: how often each of three sets of arms is chosen agrees with the probabilities from 100 000 draws, by
        a chi-squared test, and so do arms picked by estimates from ten draws each. Two rules."""
        agents = 10000
        gaussian = thompson.Prior.from_mixture([1.0], np.ones((1, D)), [np.eye(D)])
        for made, rule in ((prior(), {}), (gaussian, {}), (prior(), {"rule": "greedy", "floor": 0.1}), (prior(), {"floor": 0.05})):
            for arms in (ARMS[:2], ARMS[2:5], ARMS[4:9]):
                many = thompson.Agents(made, agents, seed=4, noise=0.5, propensity_draws=10, **rule)
                many.observe(range(agents), np.broadcast_to(X[0], (agents, D)), np.full(agents, Y[0]))
                know = thompson.Posterior(made, seed=5, noise=0.5, propensity_draws=100000, **rule)
                know.observe(X[0], Y[0])
                p = know.probabilities(arms)
                self.assertAlmostEqual(p.sum(), 1, delta=1e-12)
                self.assertGreaterEqual(p.min(), rule.get("floor", 0))
                for chosen in (many.choose(range(agents), arms), many.choose(range(agents), arms, propensity=True)[0]):
                    count = np.bincount(chosen, minlength=len(arms))
                    expected = np.maximum(p, 1e-4) * agents
                    self.assertLess(((count - expected) ** 2 / expected).sum(), 30, (rule, p, count))  # quantile 1 - 5e-6 of chi-squared with 4 degrees

    def test_closed_form(self):
        """Two arms under one Gaussian: Phi of the standardised difference, computed with NumPy."""
        gaussian = thompson.Prior.from_mixture([1.0], np.ones((1, D)), [np.eye(D)])
        one = thompson.Posterior(gaussian, noise=0.5, seed=1)
        one.observe(X, Y)
        covariance = np.linalg.inv(np.eye(D) + X.T @ X / 0.25)
        mean = covariance @ (np.ones(D) + X.T @ Y / 0.25)
        for pair in (ARMS[:2], ARMS[1:3], ARMS[[0, 0]]):
            x = pair[0] - pair[1]
            first = statistics.NormalDist().cdf(x @ mean / np.sqrt(x @ covariance @ x)) if x.any() else 0.5
            np.testing.assert_allclose(one.probabilities(pair), [first, 1 - first], atol=1e-12)

    def test_ties(self):
        """Arms that are the same, or about which nothing is known, have the same probability, and are chosen as often as it says; what was saved chooses the
        same arms afterwards. Counts of 2 000 choices by chi-squared: 30 is the quantile 1 - 5e-6 for 4 degrees of freedom."""
        gaussian, unknown = thompson.Prior.from_mixture([1.0], np.ones((1, D)), [np.eye(D)]), thompson.Prior.from_mixture([1.0], np.zeros((1, D)), [np.eye(D)])
        axes = np.eye(D)[[0, 0, 1, 1, 0]]
        for made, arms, rule in ((gaussian, ARMS[[0, 0, 0]], {}), (gaussian, ARMS[[0, 1, 0]], {}), (gaussian, ARMS[[0, 0]], {"floor": 0.1}),
                                 (unknown, ARMS[:4], {"rule": "greedy"}), (unknown, axes, {"rule": "bayes_ucb", "quantile": 0.9}),
                                 (gaussian, ARMS[[0, 0, 0]], {"rule": "greedy", "floor": 0.05})):
            with self.subTest(rule=rule, arms=len(arms)):
                one, many = thompson.Posterior(made, seed=3, **rule), thompson.Agents(made, 1000, seed=3, **rule)
                p = one.probabilities(arms)
                same = (arms[:, None] == arms[None]).all(axis=2) if made is gaussian else np.ones((len(arms), len(arms)), bool)
                for i, j in np.argwhere(same):
                    self.assertEqual(p[i], p[j])
                np.testing.assert_array_equal(many.probabilities([0], arms)[0], p)
                first = many.choose(range(1000), arms)
                self.assertEqual(first[0], one.choose(arms))
                second, announced = many.choose(range(1000), arms, propensity=True)
                if rule:    # draws give each agent probabilities of its own
                    np.testing.assert_array_equal(announced, p[second])
                count = np.bincount(np.append(first, second), minlength=len(arms))
                expected = 2000 * many.probabilities(range(1000), arms).mean(axis=0)
                self.assertLess(((count - expected) ** 2 / np.maximum(expected, 1)).sum(), 30, count)
                with tempfile.TemporaryDirectory() as folder:
                    many.save(os.path.join(folder, "agents.nc"))
                    again = thompson.Agents.open(os.path.join(folder, "agents.nc"))
                    np.testing.assert_array_equal(again.choose(range(1000), arms), many.choose(range(1000), arms))

    def test_returned(self):
        """The probability returned is the announced one; asking changes nothing; agent 0 is the posterior; a sampler with a state, an approximate one, clicks."""
        for options in ({}, {"sampler": "localised"}, {"likelihood": "logistic"}, {"rule": "greedy", "floor": 0.05}, {"sampler": "smc"}, {"sampler": "vts"}):
            with self.subTest(**options):
                one, other = (agent(propensity_draws=200, **options) for _ in range(2))
                many = None if options.get("sampler") in ("smc", "vts") else agents(propensity_draws=200, **options)
                for features, reward in zip(X, (0, 1, 1, 0, 1, 0)):
                    p = one.probabilities(ARMS)
                    np.testing.assert_array_equal(p, one.probabilities(ARMS))
                    arm, propensity = one.choose(ARMS, propensity=True)
                    self.assertEqual((propensity, (arm, propensity)), (p[arm], other.choose(ARMS, propensity=True)))
                    if many:
                        np.testing.assert_array_equal(many.probabilities([0, 3], np.stack([ARMS, ARMS[::-1]]))[0], p)
                        self.assertEqual([value.tolist() for value in many.choose([0], ARMS, propensity=True)], [[arm], [propensity]])
                        many.observe([0], features[None], [reward])
                    for each in (one, other):
                        each.observe(features, reward)
                np.testing.assert_array_equal(one.draw(3), other.draw(3))

    def test_value_of_another_policy(self):
        """A thousand logs of agents that learn, with probabilities from 20 draws: the mean of the inverse-propensity estimates of a fixed policy's value
        is within two standard errors of the true value."""
        rng, logs, rounds = np.random.default_rng(8), 1000, 30
        truth, fixed = np.array([1.0, -0.5, 0.3]), np.array([1.0, 0.5, 0.0])
        many = thompson.Agents(prior(), logs, noise=0.5, seed=2, propensity_draws=20, floor=0.05)
        ids, estimates, worth = np.arange(logs), np.zeros(logs), np.zeros(logs)
        for _ in range(rounds):
            arms = rng.standard_normal((logs, 5, D))
            arm, p = many.choose(ids, arms, propensity=True)
            reward = arms[ids, arm] @ truth + 0.5 * rng.standard_normal(logs)
            many.observe(ids, arms[ids, arm], reward)
            other = (arms @ fixed).argmax(axis=1)
            estimates += (arm == other) * reward / p / rounds
            worth += arms[ids, other] @ truth / rounds
        error = estimates - worth
        self.assertLess(abs(error.mean()), 2 * error.std(ddof=1) / np.sqrt(logs))
        self.assertLess(error.std(ddof=1), 2)

    def test_refused(self):
        for options, part in (({"floor": -0.1}, "floor"), ({"floor": 0.2}, "9 arms cannot all have this probability"), ({"propensity_draws": 0}, "propensity_draws")):
            for kind in (agent, agents):
                with self.assertRaisesRegex(thompson.Error, part):
                    kind(**options).choose(*([[0]] if kind is agents else []), ARMS)
        self.assertRaises(TypeError, agent().choose, ARMS, propensity=1)

    def test_floor_of_a_study(self):
        """With the floor 1 / arms policies choose all arms equally often, by the same random numbers: shared or per arm, whatever the rule; a larger floor is refused."""
        study = {"name": "floor", "study": "bandit", "runs": 16, "problem": {"theta": "gaussian", "arms": 2, "rounds": 30, "resample_arms": False},
                 "policies": ["ts", {"name": "ts", "floor": 0.5, "label": "any"}, {"name": "ts", "rule": "greedy", "floor": 0.5, "label": "any greedy"},
                              {"name": "ts", "posterior": "per_arm", "floor": 0.5, "label": "apart"},
                              {"name": "ts", "posterior": "per_arm", "rule": "greedy", "floor": 0.5, "label": "apart greedy"}]}
        with tempfile.TemporaryDirectory() as folder:
            regret = thompson.run(study, os.path.join(folder, "out"))["regret"].values[0]
            np.testing.assert_array_equal(regret[1], regret[2])
            np.testing.assert_array_equal(regret[3], regret[4])
            self.assertGreater(regret[1, :, -1].mean(), 1.5 * regret[0, :, -1].mean())
            with self.assertRaisesRegex(thompson.Error, "3 arms cannot all have this probability"):
                thompson.run(study, os.path.join(folder, "refused"), problem__arms=3)


class Threads(unittest.TestCase):
    def test_one_agent_in_several(self):
        """Calls take turns: the draws are those of one thread, in some order, and no observation is lost."""
        rounds, workers = 200, 4
        one, alone = agent(sampler="localised"), agent(sampler="localised")

        def work(_):
            return [one.draw(2).tobytes() for _ in range(rounds)]

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            drawn = [theta for part in pool.map(work, range(workers)) for theta in part]
        self.assertEqual(sorted(drawn), sorted(alone.draw(2).tobytes() for _ in range(rounds * workers)))

        def mixed(number):
            for i in range(rounds):
                one.observe(X[i % 6], Y[i % 6])
                one.choose(ARMS)
                one.draw(1 + (i + number) % 7)
                if i % 50 == 0:
                    copy.copy(one).draw(3)

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(mixed, range(workers)))
        self.assertEqual(len(one.observations[1]), rounds * workers)

    def test_fork(self):
        """A child draws what the parent draws."""
        one = agent()
        one.observe(X, Y)
        ends = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(ends[1], one.draw(4).tobytes())
            os._exit(0)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(os.read(ends[0], 8 * 4 * D), one.draw(4).tobytes())

    def test_fork_while_others_work(self):
        """Children of a process whose other threads save, open and draw, with a shared prior: each opens and saves a file of its own, draws with that
        prior, and uses the object that was being saved."""
        made = thompson.train(theta=np.random.default_rng(1).standard_normal((50, D)), family="diffusion", stages=3, training_steps=5, hidden=[4])
        drawn, shared, ended = thompson.Posterior(made, seed=1), agents(), threading.Event()
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python's own, of a process with threads that is forked
            shared.save(os.path.join(folder, "shared.nc"))

            def work(action):
                while not ended.is_set():
                    action()

            actions = (lambda: shared.save(os.path.join(folder, "shared.nc")), lambda: drawn.draw(200), lambda: thompson.Agents.open(os.path.join(folder, "shared.nc")))
            others = [threading.Thread(target=work, args=[action]) for action in actions]
            for other in others:
                other.start()
            try:
                for number in range(20):
                    child = os.fork()
                    if child == 0:
                        signal.alarm(int(program.PATIENCE))
                        path = os.path.join(folder, f"{number}.nc")
                        shared.save(path)
                        thompson.Agents.open(path).draw([0])
                        thompson.Posterior(made, seed=1).draw(2)
                        drawn.draw(2)
                        os._exit(0)
                    self.assertEqual(os.waitpid(child, 0)[1], 0)
            finally:
                ended.set()
                for other in others:
                    other.join()

    def test_few_tasks(self):
        """A prior from too few tasks is made, with a warning; one from enough tasks without."""
        theta = np.random.default_rng(1).standard_normal((20, 2))
        with self.assertWarnsRegex(UserWarning, "20 past tasks for a prior of 8 components"):
            thompson.train(theta=theta, components=8)
        with self.assertWarnsRegex(UserWarning, "2 past tasks for a prior of 1 component"):
            thompson.train(logs=([0, 0, 1, 1], np.repeat(np.eye(2), 2, axis=0), [1, 0, 0, 1]), family="gaussian", likelihood="logistic")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            thompson.train(theta=theta, components=2)

    def test_missing_agent(self):
        for ids, said in (([10000], "id is 10000;"), ([0, 10000], "ids are from 0 to 10000;")):
            with self.assertRaisesRegex(IndexError, said):
                agents().draw(ids)

    def test_where_warnings_point(self):
        """A prior that fixes a coordinate is named however it is made, and the warning points to the line that made it, not into the package."""
        theta = np.random.default_rng(1).standard_normal((60, 2))
        theta[:, 1] = 7
        tasks = np.repeat(np.arange(3), 2)
        makers = {"constantly 7": lambda: thompson.train(theta=theta, components=1),
                  "2 times": lambda: thompson.Prior.from_mixture([1.0], [[0, 1.0]], [[[1, 2], [2, 4 + 1e-13]]]),
                  "past tasks": lambda: thompson.train(logs=(tasks, np.ones((6, 1)), [0.0, 1, 0, 2, 3, 3]), family="gaussian")}
        for words, make in makers.items():
            with self.subTest(words), self.assertWarnsRegex(UserWarning, words) as caught:
                make()
            self.assertEqual(os.path.basename(caught.filename), os.path.basename(__file__))

    def test_failed_check(self):
        """A denoiser whose own check fails gives a warning when it is made, opened, or used by a posterior."""
        theta = np.random.default_rng(1).standard_t(1, size=(150, 2))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "denoiser.nc")
            for make in (lambda: thompson.train(theta=theta, family="denoiser", training_steps=10, hidden=[4, 4]).save(path), lambda: thompson.Prior.open(path),
                         lambda: thompson.Posterior(path, "localised"), lambda: thompson.Agents(path, 2, "localised")):
                with self.assertWarnsRegex(UserWarning, "fails its own check"):
                    make()

    def test_interrupt(self):
        """Control-C ends the fit of a prior, and the thread that runs it: these fits would take hours."""
        code = """
import numpy as np, thompson
print("began", flush=True)
try:
    thompson.train(theta=np.random.default_rng(1).standard_normal((FIT)
except KeyboardInterrupt:
    print("interrupted", [thread.name for thread in threading.enumerate()])
"""
        for fit in ('500, 2)), family="diffusion", training_steps=10**7, stages=1000', '100, 2)), family="denoiser", training_steps=10**7, hidden=[256, 256]',
                    '10**4, 30)), components=200, mixture_starts=1000'):
            with in_a_process(code.replace("FIT", fit)) as process:
                self.assertEqual(process.stdout.readline(), "began\n")
                interrupt = threading.Timer(0.4, process.send_signal, [signal.SIGINT])
                interrupt.start()
                said = process.communicate(timeout=program.PATIENCE)
            self.assertEqual((process.returncode, said[0]), (0, "interrupted ['MainThread']\n"), said[1])


class Rules(unittest.TestCase):
    def test_bayes_ucb(self):
        """Mean + z sd for an agent with prior N(0, I), computed with NumPy; the rounds left are counted from the last `forget`."""
        horizon, alpha = 8, 0.3
        gaussian = thompson.Prior.from_mixture([1], np.zeros((1, D)), [np.eye(D)])
        one = thompson.Posterior(gaussian, rule="bayes_ucb", horizon=horizon, bayes_ucb_alpha=alpha, noise=0.5, seed=1)
        self.assertEqual(one.rule, "bayes_ucb")
        for _ in range(2):
            precision, vector = np.eye(D), np.zeros(D)
            for t in range(horizon):
                covariance = np.linalg.inv(precision)
                z = -statistics.NormalDist().inv_cdf(0.5 / (1 + alpha * (horizon - t)))
                index = ARMS @ covariance @ vector + z * np.sqrt(np.einsum("ki,ij,kj->k", ARMS, covariance, ARMS))
                arm = (copy.copy(one) if t == 3 else one).choose(ARMS)
                if t == 3:
                    one.choose(ARMS)
                self.assertEqual(arm, np.argmax(index))
                one.observe(ARMS[arm], Y[t % 6])
                precision, vector = precision + np.outer(ARMS[arm], ARMS[arm]) / 0.25, vector + ARMS[arm] * Y[t % 6] / 0.25
            one.forget()

    def test_refused(self):
        for options, part in (({"rule": "bayes_ucb"}, "set its option horizon"), ({"rule": "greedy", "quantile": 0.9}, "belongs to rule: bayes_ucb"),
                              ({"rule": "bayes"}, "bayes_ucb")):
            with self.assertRaisesRegex(thompson.Error, part):
                agent(**options)


class Programs(unittest.TestCase):
    def test_much_is_printed(self):
        """More than a pipe holds, on both of them: 1 MB each, alternating."""
        with tempfile.TemporaryDirectory() as folder:
            script = pathlib.Path(folder, "thompson")
            script.write_text(f"#!{sys.executable}\nimport sys\nfor _ in range(1000):\n    sys.stdout.write('o' * 1023 + '\\n')\n    sys.stderr.write('e' * 1023 + '\\n')\n",
                              encoding="utf-8")
            script.chmod(0o755)
            code = "from thompson import studies; print(len(studies.call('plan')))"
            with in_a_process(code, env={**os.environ, "THOMPSON_PROGRAM": str(script)}) as process:
                said = process.communicate(timeout=60 if not program.SANITIZED else program.PATIENCE)
            self.assertEqual(said[0], "1024000\n", said[1])


if __name__ == "__main__":
    program.main()

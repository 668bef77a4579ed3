#!/usr/bin/env python3
"""What the code of a user's denoising oracle can do wrong: each kind makes its own task fail with a clear sentence, nothing else is lost, and a repaired
oracle is resumed. What only its answer can be is asked of the worker in this process; what ends or blocks a process, of the program."""

import importlib.util
import os
import pathlib
import signal
import subprocess
import sys
import time

import netCDF4
import numpy as np
import program

# What a call returns, for D[2, 2], and what the message says.
ANSWERS = {
    "raises": (lambda D: 1 / 0, "ZeroDivisionError: division by zero (program_oracle_faults.py, line"),
    "exits": (lambda D: sys.exit("enough"), "SystemExit: enough"),
    "interrupts": (lambda D: signal.raise_signal(signal.SIGINT), "KeyboardInterrupt"),
    "runs_out_of_memory": (lambda D: np.empty(10 ** 15), "MemoryError: Unable to allocate"),
    "recurses": (lambda D: ANSWERS["recurses"][0](D), "RecursionError"),
    "nothing": (lambda D: None, "returned values of type object where float64 or float32 is needed"),
    "words": (lambda D: "D", "returned values of type <U1"),
    "integers": (lambda D: D.astype(int), "returned values of type int64"),
    "flags": (lambda D: D > 0, "returned values of type bool"),
    "imaginary": (lambda D: D + 1j, "returned values of type complex128"),
    "objects": (lambda D: D.astype(object), "returned values of type object"),
    "yields": (iter, "returned values of type object"),
    "ragged": (lambda D: [[1.0, 2.0], [3.0]], "ValueError: setting an array element with a sequence"),
    "few_rows": (lambda D: D[1:], "returned an array of shape (1, 2) where (2, 2) is needed"),
    "few_columns": (lambda D: D[:, 1:], "returned an array of shape (2, 1) where (2, 2) is needed"),
    "flat": (np.ravel, "returned an array of shape (4,) where (2, 2) is needed"),
    "scalar": (lambda D: 0.5, "returned an array of shape () where (2, 2) is needed"),
    "thick": (lambda D: D[..., None], "returned an array of shape (2, 2, 1) where (2, 2) is needed"),
    "nan": (lambda D: D + np.array([[0, 0], [np.nan, 0]]), "returned a value that is not finite, in row 1 of 2"),
    "infinite": (lambda D: D + np.array([[0, np.inf], [0, 0]]), "returned a value that is not finite, in row 0 of 2"),
    "masked": (lambda D: np.ma.masked_array(D, D > -9), "returned masked values"),
}
# What happens in call 3 of a process, and what the message says.
FAULTS = {
    "raises": ("1 / 0", "ZeroDivisionError: division by zero (hostile.py, line"),
    "leaves": ("os._exit(9)", "its process ended with status 9"),
    "killed": ("os.kill(os.getpid(), 9)", "its process ended by signal 9 (Killed)"),
    "crashes": ("ctypes.string_at(0)", "its process ended by signal 11 (Segmentation fault); its output ends with: "),
    "complains": ("print(10 ** 6 * 'x', 'no such device'); os._exit(1)", "its process ended with status 1; its output ends with: xxx"),
    "hides": ("time.sleep(100000) if os.fork() == 0 else os._exit(7)", "its process ended with status 7"),
    "closes": ("os.close(0); time.sleep(100000)", "its process closed its connection"),
    "garbage": ("os.write(0, b'x' * 100)", "its process sent an invalid answer"),
    "nan": ("D[1, 0] = np.nan", "returned a value that is not finite, in row 1 of "),
    "sleeps": ("time.sleep(100000)", "did not answer within 5 s"),
    "prints_for_ever": ("while not time.sleep(0.001): print('x')", "did not answer within 5 s; its output ends with: x x"),
}
# What is strange and does no harm: the results are those of an oracle that does nothing of it.
STRANGE = ["return D.tolist()", "return np.asfortranarray(D)", "return np.repeat(D, 2, axis=0)[::2]", "return np.matrix(D)", "x[:] = np.nan", "os.fork()",
           "print(10 ** 6 * 'x')", "sys.stdout.close(); os.close(1)", "os.chdir('/')", "signal.signal(signal.SIGTERM, signal.SIG_DFL)",
           "threading.Thread(target=time.sleep, args=(100000,), daemon=True).start()"]

STUDY = """
name: hostile
study: posterior
runs: 1
block: 1
draws: 4
metrics: [moments]
problem: {theta: gaussian, arms: 5, sample_sizes: [3]}
prior: {family: oracle, module: hostile, callable: oracle, sigma_min: 0.01, sigma_max: 30, stages: 16, call_limit: 5}
policies: [diffts]
"""


def hostile():
    """A module whose oracle does what the rows of its first call say: fault number rows - 2 as long as there is a file `bad` next to the module, and after
    the faults what is strange, one kind a call."""
    lines = ["import ctypes, os, pathlib, signal, sys, threading, time", "import numpy as np", "BAD = pathlib.Path(__file__).with_name('bad').exists()", "calls = []",
             "def oracle(x, sigma):", "    D = x / (1 + sigma ** 2)", "    calls.append(len(x))", "    kind, number = calls[0] - 2, len(calls)", "    if BAD and number == 3:"]
    for kind, (code, _) in enumerate(FAULTS.values()):
        lines += [f"        if kind == {kind}:", f"            {code}"]
    for call, code in enumerate(STRANGE, 1):
        lines += [f"    if kind == {len(FAULTS)} and number == {call}:", f"        {code}"]
    return "\n".join([*lines, "    return D", ""])


class Faults(program.ProgramTest):
    def setUp(self):
        super().setUp()
        self.write("hostile.py", hostile())
        os.environ["THOMPSON_PYTHON"] = sys.executable
        self.environment = {"PYTHONPATH": self.folder}

    def run_study(self, *arguments, code=0, **options):
        process = program.thompson("run", self.write("study.yaml", STUDY), "-o", self.path("out"), *arguments, environment=self.environment, **options)
        self.assertEqual(process.returncode, code, process.stderr)
        return process

    def test_answers(self):
        """The worker refuses each answer that is no D of the right shape with a sentence, and takes what only looks strange."""
        spec = importlib.util.spec_from_file_location("worker", pathlib.Path(program.SOURCE, "analysis", "thompson", "worker.py"))
        worker = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(worker)
        D = np.array([[1.0, 2.0], [3.0, 4.0]])
        for name, (answer, sentence) in ANSWERS.items():
            with self.subTest(name), self.assertRaises(worker.Refused) as raised:
                worker.evaluate(np, answer, (D.copy(),))
            self.assertIn(sentence, str(raised.exception))
        for answer in (D.tolist(), np.asfortranarray(D), D.astype("f4"), np.ma.masked_array(D)):
            np.testing.assert_array_equal(worker.evaluate(np, lambda D, answer=answer: answer, (D,)), D)

    def test_faults(self):
        """Each kind of fault makes its own task fail, with a message that names the callable and the call; what is only strange does no harm. Once the faults are
        repaired, --resume completes the study, and all settings, which differ in the rows of a call alone, have the same draws."""
        settings = len(FAULTS) + 2
        sweep = ("--set", "sweep={prior.batch: [%s]}" % ", ".join(str(2 + kind) for kind in range(settings)))
        bad = pathlib.Path(self.write("bad", ""))
        said = self.run_study(*sweep, "--max-failures", "100", ranks=2, code=5).stderr
        for rows, (name, (_, sentence)) in enumerate(FAULTS.items(), 2):
            with self.subTest(name):
                lines = [line for line in said.splitlines() if f"prior oracle: module hostile, callable oracle, call 3 ({rows} rows, sigma " in line and "task " in line]
                self.assertEqual(len(lines), 1, said[-3000:] if not lines else lines)
                self.assertIn(sentence, lines[0])
        with netCDF4.Dataset(self.path("out/results.nc")) as results:
            self.assertEqual(results["status"][:, 0, 0].tolist(), [2] * len(FAULTS) + [1, 1])
        bad.unlink()
        self.run_study(*sweep, "--resume")
        with netCDF4.Dataset(self.path("out/results.nc")) as results:
            np.testing.assert_array_equal(results["mean_error"][...], results["mean_error"][-1:].repeat(settings, axis=0))

    def test_products(self):
        """A fault in the oracle's own products is told apart."""
        self.write("hostile.py", "oracle = lambda x, sigma: x / (1 + sigma ** 2)\noracle.jvp = lambda x, sigma, v: v[1:]\n")
        said = self.run_study("--set", "policies=[joint]", code=5).stderr
        self.assertRegex(said, r"callable oracle, call \d+, of jvp \(\d+ rows, sigma [\d.]+\): returned an array of shape \(\d+, 2\) where")

    def test_stop(self):
        """SIGTERM does not wait for a call that does not return."""
        self.write("hostile.py", "import pathlib, time\ndef oracle(x, sigma):\n    pathlib.Path(__file__).with_name('began').touch()\n    time.sleep(100000)\n")
        began = pathlib.Path(self.path("began"))
        study = self.write("study.yaml", STUDY.replace("call_limit: 5", "call_limit: 100000"))
        with subprocess.Popen([program.PROGRAM, "run", study, "-o", self.path("out")], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              env=dict(os.environ, **self.environment)) as job:
            deadline = time.time() + program.PATIENCE
            while not began.exists() and time.time() < deadline:
                time.sleep(0.05)
            job.send_signal(signal.SIGTERM)
            said = job.communicate(timeout=program.PATIENCE)[1]
        self.assertEqual(job.returncode, 75, said)
        self.assertNotIn("failed", said)


if __name__ == "__main__":
    program.main()

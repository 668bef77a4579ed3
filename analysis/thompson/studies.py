"""Whole studies, run by the program: run one, read what it wrote."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import typing

import numpy as np

from . import _library as library
from . import design, store
from .progress import Progress

if typing.TYPE_CHECKING:
    import xarray as xr

SOME_FAILED = 5  # exit status: some tasks failed, the results of the others are written
# One machine with more ranks than cores, root in a container: settings that Open MPI needs for these. Variables that are already set keep their
# values. The settings of mpiexec have other names from version 5 on.
OPEN_MPI = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "PRTE_MCA_hwloc_default_binding_policy": "none"}
OPEN_MPI_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def program():
    """The program `thompson`: the one named by THOMPSON_PROGRAM, the one next to this package, or the one in the path."""
    path = os.environ.get("THOMPSON_PROGRAM") or library.beside("bin/thompson") or shutil.which("thompson")
    if not path:
        raise FileNotFoundError("studies, logs of past tasks and several ranks need the program thompson, which pip does not install: build it with CMake "
                                "(docs/install.md) and put it into PATH, or name it in THOMPSON_PROGRAM")
    return path


def call(*arguments, ranks=1, progress=None):
    """Run the program; its last sentence becomes an Error, unless only some tasks failed, its notes become warnings, and the rest is progress. Returns what
    it printed."""
    command = [program(), *map(str, arguments)]
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}
    if ranks > 1:
        command = [os.environ.get("THOMPSON_MPIEXEC", "mpiexec"), "-n", str(ranks), *command]
        environment = {**OPEN_MPI, **(OPEN_MPI_ROOT if os.geteuid() == 0 else {}), **environment}
    shown = Progress(progress)
    # Output goes to a file: with two pipes, one would fill up while the other is read.
    with tempfile.TemporaryFile("w+") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True, env=environment) as process:
        lines = []
        try:
            for line in process.stderr:
                lines.append(line.rstrip())
                if not line.startswith(("thompson: ", "note: ")):
                    shown.line(lines[-1])
            process.wait()
        except BaseException:
            process.terminate()
            raise
        output.seek(0)
        printed = output.read()
    said = [line.removeprefix("thompson: ") for line in lines if line.startswith("thompson: ")]
    sentence = said[-1] if said else "\n".join(lines[-5:])
    for note in (line.removeprefix("note: ") for line in lines if line.startswith("note: ")):
        library.warn(note)
    if process.returncode == SOME_FAILED:
        library.warn(f"some tasks failed: {sentence}")
    elif process.returncode != 0:
        raise library.Error(sentence, process.returncode)
    return printed


def plain(value):
    """Convert NumPy's numbers and arrays, and paths, to what JSON supports."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    return os.fspath(value)


def run(study: dict | str | os.PathLike, output: str | os.PathLike | None = None, ranks: int = 1, resume: bool = False, overwrite: bool = False,
        progress: bool | None = None, **keys) -> xr.Dataset:
    """Run a study with the program `thompson`.

    Parameters
    ----------
    study : path or dict
        The study file, or its keys as a dictionary.
    output : path, optional
        The results folder; results/NAME by default.
    ranks : int
        Processes that share the work.
    resume, overwrite : bool
        Continue from what is in `output`, or replace it.
    progress : bool, optional
        Show on standard error how far it is: always, never, or, by default, once it has taken three seconds.
    **keys
        Replace keys of the study, with double underscores for dots: run("figure2.yaml", runs=64, prior__stages=50).

    Returns
    -------
    xarray.Dataset
        As returned by `results`.
    """
    if resume and overwrite:
        raise TypeError("give either resume or overwrite")
    with tempfile.TemporaryDirectory(prefix="thompson-") as folder:
        if isinstance(study, dict):
            path = pathlib.Path(folder, "study.yaml")
            path.write_text(json.dumps(study, default=plain), encoding="utf-8")  # every JSON text is YAML
        else:
            path = pathlib.Path(study)
        sets = [word for key, value in keys.items() for word in ("--set", f"{key.replace('__', '.')}={json.dumps(value, default=plain)}")]
        mode = ["--resume"] if resume else ["--overwrite"] if overwrite else []
        try:
            plan = json.loads(call("plan", path, *sets, "--json"))
            target = pathlib.Path(output) if output else pathlib.Path("results", plan["name"])
            call("run", path, *sets, *mode, "-o", target, "--progress", "plain", ranks=ranks, progress=progress)
        except library.Error as error:
            if not isinstance(study, dict):
                raise
            # The file is gone by then, and a dictionary has no lines.
            raise library.Error(re.sub(re.escape(str(path)) + r"(:\d+:\d+)?", "the study", str(error)), error.code) from None
    return results(target)


def results(directory: str | os.PathLike | typing.Iterable[str | os.PathLike]) -> xr.Dataset | dict[str, xr.Dataset]:
    """The results of a study, as the program wrote them into its folder, with every key of the study as a coordinate over its settings: `problem_noise`,
    swept or not. For several folders {label: results}, where the label is the name of the folder or, if two have the same, its path, and a key that is text in
    one of them is text in all. So studies combine:

        xr.concat(thompson.results(["a", "b"]).values(), "setting").swap_dims(setting="problem_noise")
    """
    if not isinstance(directory, (str, os.PathLike)):
        folders = [pathlib.Path(folder) for folder in directory]
        places = [store.folder_of(folder).resolve() for folder in folders]
        for folder, place in zip(folders, places):
            if places.count(place) > 1:
                raise library.Error(f"{folder} is given {places.count(place)} times; name each folder once")
        names = [place.name for place in places]
        labels = names if len(set(names)) == len(names) else list(map(str, folders))
        return dict(zip(labels, design.of_one_type([results(folder) for folder in folders])))
    with store.results(directory, kind=None) as dataset:
        return dataset.load().assign_coords(design.constants(dataset)).drop_vars("reward_noise", errors="ignore")

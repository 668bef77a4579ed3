#!/usr/bin/python3
"""Writes docs/internals/performance.md and the tables of docs/performance.md from what peers.py measured: performance_page.py peers.json"""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import pages  # noqa: E402

PUBLISHED, SMALL = [100, 100], [20, 20]
COSTS = ("ts", "lints", "mixts", "lmc", "vits1", "vits2", "diffts", "localised", "mala", "smc", "twisted")    # of docs/performance.md
LITTLE = 3      # a gain below this is listed as small


def figure(x, digits=2):
    """About three digits, without an exponent if that reads well."""
    if x is None:
        return "-"
    if x != 0 and not 1e-3 <= abs(x) < 1e6:
        mantissa, exponent = f"{x:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    decimals = 0 if abs(x) >= 100 else 1 if abs(x) >= 10 else 2 if abs(x) >= 1 else 3
    return f"{x:.{decimals}f}"


def percent(x):
    return "-" if x is None else f"{100 * x:.1f}%" if x < 0.0995 else f"{100 * x:.0f}%"


def table(head, rows):
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *rows])


def hidden(row):
    return f" {tuple(row['hidden'])}" if row.get("hidden") else ""


def within(spread):
    return f"{figure(spread['median'])} ({figure(spread['low'])} to {figure(spread['high'])})"


def section(results, name, write):
    """What a part measured, or why it measured nothing."""
    part = results.get(name, {"skipped": "it was not asked for"})
    return write(part["rows"]) if "rows" in part else f"Not measured: {part['skipped']}."


def machine(results):
    found = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items() if version)
    return (f"{found['processor']}, {found['cores']} cores, instruction level x86-64-v{found['instruction_level']}, {found['date']}, load average {found['load']:.1f} "
            f"when it began; one core at its peak: {found['peak_float_flops'] / 1e9:.0f} Gflop/s in float32, {found['peak_double_flops'] / 1e9:.0f} in float64, "
            f"{found['memory_bytes_per_second'] / 1e9:.0f} GB/s of memory (triad of STREAM).\n{programs(results)}; {versions}.")


def programs(results):
    """The one program, or the program with which each part was measured."""
    of_part = {name: part["program"] for name, part in results.items() if "rows" in part}
    names = sorted(set(of_part.values()))
    return names[0] if len(names) == 1 else "; ".join(f"{', '.join(part for part in of_part if of_part[part] == name)}: {name}" for name in names)


def floor(rows):
    """A lower bound on the time of a round, and the actual time: its shares of the peaks are these bounds over the time of the round."""
    lines = []
    for row in rows:
        if row["sampler"] not in ("ts", "diffts", "dps", "joint", "twisted"):
            continue
        measured = 1 / row["rounds_per_second"]
        operations, traffic = row["round_fraction_of_peak"] * measured, row["round_fraction_of_bandwidth"] * measured
        lines.append([row["label"] + hidden(row), row["dimension"], figure(row["flops_per_round"] / 1e3), figure(row["bytes_per_round"] / 1e3), figure(1e6 * operations),
                      figure(1e6 * traffic), figure(1e6 * measured), figure(measured / max(operations, traffic))])
    return table(["sampler", "d", "kflop per round", "kB per round", "operations over peak, us", "bytes over bandwidth, us", "measured, us", "times the larger"], lines)


def every_sampler(rows):
    return table(["sampler", "d", "T", "K", "n", "B", "CPU s per draw", "of peak", "rounds/s", "of peak", "of memory"],
                 [[row["label"] + hidden(row), row["dimension"], row["stages"] or "-", row["arms"], row["rounds"], row["runs"], figure(row["seconds_per_draw"]),
                   percent(row["draw_fraction_of_peak"]), figure(row["rounds_per_second"]), percent(row["round_fraction_of_peak"]),
                   percent(row["round_fraction_of_bandwidth"])] for row in rows])


def peers(rows):
    return table(["peer", "method", "CPU ms per run", "ours", "CPU ms per run", "times faster (lowest and highest turn)"],
                 [[row["peer"], row["peer_method"] + (hidden(row) if row["peer_method"] == row["ours"] else ""), figure(1e3 * row["peer_seconds"]["median"]),
                   row["ours"] + hidden(row), figure(1e3 * row["our_seconds"]["median"]), within(row["ratio"])] for row in rows])


def goals(results):
    """Goals that were set before anything was measured, and the results."""
    def ratios(part, chosen):
        return [(row["ratio"]["median"], f" in a batch of {row['batch']}" if row.get("batch", 1) > 1 else hidden(row) if part == "twisted" else "")
                for row in results.get(part, {}).get("rows", []) if chosen(row)]

    def diffts(size, what):
        return lambda row: row["ours"] == "diffts" and row["hidden"] == size and row["peer"].startswith(what) and row["peer_method"] == "diffts"

    def rows_of(part):
        return results.get(part, {}).get("rows", [])

    def speed_of(policy):
        return [(row["speed"], "") for row in rows_of("vits") if row["policy"] == policy]

    def in_plane(sampler, size, what):
        return [(row[what], "") for row in rows_of("bench") if (row["sampler"], row["hidden"], row["dimension"]) == (sampler, size, 2)]

    trained = [(prior, name, row) for prior, of in dict(rows_of("training")).get("summary", {}).items() for name, row in of.items() if name != "scikit-learn"]
    wide = [(prior, row) for prior, name, row in trained if name == "100 wide, else default"]
    wanted = [("DiffTS (100, 100), d = 2, share of the peak over whole simulations", in_plane("diffts", PUBLISHED, "round_fraction_of_peak"), 0.65, True),
              ("DiffTS (100, 100), times faster than the Python loop", ratios("loops", diffts(PUBLISHED, "Python")), 500, True),
              ("DiffTS (20, 20), times faster than Gaussian TS in a Python loop",
               ratios("loops", lambda row: row["ours"] == "diffts" and row["peer_method"] == "ts"), 10, True),
              ("DiffTS (20, 20), times faster than plain batched NumPy", ratios("batches", diffts(SMALL, "NumPy, plain")), 20, True),
              ("DiffTS (20, 20), times faster than tuned batched NumPy", ratios("batches", diffts(SMALL, "NumPy, tuned")), 20, True),
              ("twisted with 4 particles, times the cost of diffts", ratios("twisted", lambda row: True), 10, False),
              ("training of a prior, times faster than scikit-learn", [(row["times_faster"], f" ({prior}, {name}; loss {row['difference']:+.1f}%)") for prior, name, row in trained],
               10, True),
              ("training of networks of the published size, loss at the worst stage over scikit-learn's",
               [(1 + row["worst_difference"] / 100, f" ± {row['worst_error'] / 100:.4f} ({prior}, stage {row['worst_stage']})") for prior, row in wide], 1, False),
              ("100 networks of the published size, CPU seconds of their training", [(row["prior_seconds"], f" ({prior})") for prior, row in wide], 25, False),
              ("Gaussian TS, d = 2, 100 arms, rounds per second", in_plane("ts", [], "rounds_per_second"), 10**6, True),
              ("VITS-II, d = 20, times faster than batched NumPy", speed_of("vits2"), 20, True),
              ("LMC, d = 20, times faster than batched NumPy", speed_of("lmc"), 20, True),
              ("VITS-I, d = 20, times faster than batched NumPy, second goal", speed_of("vits1"), 3, True),
              ("VITS-II, d = 20, times faster than batched NumPy, second goal", speed_of("vits2"), 3, True),
              ("LMC, d = 20, times faster than batched NumPy, second goal", speed_of("lmc"), 5, True),
              ("VITS, d = 20, share of the peak in float64",
               [(row["of_peak"], f" ({row['sampler']})") for row in rows_of("gradient") if row["d"] == 20 and row["sampler"].startswith("vits")], 0.55, True)]
    rows = []
    for what, found, limit, least in wanted:
        if not found:
            continue
        worst = min(found)[0] if least else max(found)[0]
        held = worst >= limit if least else worst <= limit
        rows.append([what, f"{'at least' if least else 'at most'} {limit}", " and ".join(figure(ratio) + note for ratio, note in found), "yes" if held else "no"])
    return table(["", "goal", "measured", "met by all"], rows)


def small_gains(results):
    """Every comparison with another program in which ours is less than LITTLE times faster, smallest first."""
    found = [(row["ratio"]["median"], row["peer"], row["ours"] + hidden(row)) for part in ("loops", "batches", "torch")
             for row in results.get(part, {}).get("rows", []) if row["peer_method"] == row["ours"]]
    found += [(row["speed"], "NumPy, batched", f"{row['policy']}, d = {row['d']}") for row in results.get("vits", {}).get("rows", [])]
    return table(["peer", "method", "times faster"], [[peer, method, figure(ratio)] for ratio, peer, method in sorted(found) if ratio < LITTLE])


def twisted(rows):
    return table(["hidden", "diffts, CPU ms per run", f"twisted, {rows[0]['particles']} particles", "times"],
                 [[tuple(row["hidden"]), figure(1e3 * row["diffts_seconds"]["median"]), figure(1e3 * row["twisted_seconds"]["median"]), within(row["ratio"])]
                  for row in rows])


def posterior(rows):
    first = rows[0]
    lines = [[row["peer"], row["sampler"] + hidden(row), f"{row['emd_peer']:.4f}", f"{row['emd_ours']:.4f}", f"{row['emd_floor']:.4f}",
              f"{row['difference']:+.4f} ± {row['difference_error']:.4f}", "yes" if row["agree"] else "no"] for row in rows]
    return (f"Mean earth mover's distance of {first['draws']} draws to as many exact ones, over {first['histories']} histories of {first['observations']} observations; "
            "floor: between two sets of exact draws.\n\n" + table(["peer", "method", "peer", "ours", "floor", "ours - peer", "within 3 standard errors"], lines))


def training(found):
    lines = []
    for prior, of in found["summary"].items():
        for name, row in of.items():
            beside = ["", "", ""] if name == "scikit-learn" else [f"{row['difference']:+.2f} ± {row['difference_error']:.2f}",
                                                                   f"{row['worst_difference']:+.2f} ± {row['worst_error']:.2f} (stage {row['worst_stage']})",
                                                                   figure(row["times_faster"])]
            ours = ["100", ""] if name == "scikit-learn" else [f"{row['hidden'][0]}, {row['steps']} x {row['batch']}", percent(row["of_peak"])]
            lines.append([prior, name, ours[0], figure(row["cpu_seconds"]), f"{row['loss']:.4f}", *beside, ours[1]])
    stages = [row["scikit-learn"]["stage"] for row in next(iter(found["stages"].values()))]
    wide = {prior: of["100 wide, else default"] for prior, of in found["summary"].items()}
    floors = ", ".join(f"{row['prior_operations'] / 1e9:.0f} Gflop ({prior}), {row['prior_seconds']:.2f} s" for prior, row in wide.items())
    return (f"Stages {', '.join(map(str, stages))} of priors in the plane (`cross`, `rays`) and in five dimensions (`six`, a mixture of six Gaussians), from 10 000 samples; "
            "scikit-learn with the published settings (two layers of 100). Loss: mean squared error on fresh data, the same for all; ± of its mean over stages, and of one stage.\n\n"
            + table(["prior", "", "width, steps x batch", "CPU s", "loss", "loss against scikit-learn's, percent", "at the worst stage", "times faster", "of peak"], lines)
            + f"\n\nMatrix products in the steps of all stages of a prior, 100 wide, else default, and what their training takes: {floors}.")


def denoiser(rows):
    return table(["d", "hidden", "batch", "Mflop per step", "us per step", "gradient alone, of peak", "whole step, of peak"],
                 [[row["d"], tuple(row["hidden"]), row["batch"], figure(row["operations"] / 1e6), figure(1e6 * row["seconds_a_step"]), percent(row["gradient_of_peak"]),
                   percent(row["step_of_peak"])] for row in rows])


def floors(rows):
    """The operations of a draw, and the time that they take at the rates of the machine, one after the other."""
    kinds = ("operations", "floats", "bytes", "uniforms", "normals", "exponentials", "densities")
    return table(["sampler", "d", "kflop in float64", "in float32", "kB of memory", "uniforms", "normals", "exponentials", "densities", "floor, us", "measured, us", "times"],
                 [[row["label"], row["d"], *[figure(row[kind] / (1e3 if place < 3 else 1)) if row[kind] else "-" for place, kind in enumerate(kinds)],
                   figure(1e6 * row["floor_seconds"]), figure(1e6 * row["seconds"]), figure(row["seconds"] / row["floor_seconds"])] for row in rows])


def factors(rows):
    return table(["d", "in lanes, ns", "of the peak", "LAPACK, ns", "of the peak"],
                 [[row["d"], figure(1e9 * row["seconds_lanes"]), percent(row["lanes_of_peak"]), figure(1e9 * row["seconds_lapack"]), percent(row["lapack_of_peak"])]
                  for row in rows])


def vits(rows):
    return table(["policy", "d", "arms", "batched NumPy, CPU ms per run", "ours", "times faster", "than NumPy run by run", "rounds/s", "regret: NumPy", "ours"],
                 [[row["policy"], row["d"], row["arms"], figure(1e3 * row["numpy_seconds_a_run"]), figure(1e3 * row["seconds_a_run"]), figure(row["speed"]),
                   figure(row["speed_over_single_runs"]), figure(row["rounds_per_second"]), f"{row['numpy_regret']:.2f} ± {row['numpy_regret_se']:.2f}",
                   f"{row['regret']:.2f} ± {row['regret_se']:.2f}"] for row in rows])


def gradient(rows):
    dimensions = list(dict.fromkeys(row["d"] for row in rows))
    of = {(row["sampler"], row["d"]): row for row in rows}
    return table(["sampler", *(f"d = {d}" for d in dimensions)],
                 [[sampler, *(f"{figure(1e6 * of[sampler, d]['seconds_per_draw'])} us, {percent(of[sampler, d]['of_peak'])}" for d in dimensions)]
                  for sampler in dict.fromkeys(row["sampler"] for row in rows)])


def vits_floor(rows, found):
    """Why a batch in NumPy cannot be beaten by much: an update of VITS-II, a step of LMC, and the cost of the world."""
    of = {row["policy"]: row for row in rows}
    rounds, updates, d = of["vits2"]["rounds"], 10, of["vits2"]["d"]

    def each(what, more, less, count):
        return 1e6 * (of[more][what] - of[less][what]) / (rounds * count)

    theirs, ours = (each(what, "vits2", "lints", updates) for what in ("numpy_seconds_a_run", "seconds_a_run"))
    step_theirs, step_ours = (each(what, "lmc 50", "lmc", 40) for what in ("numpy_seconds_a_run", "seconds_a_run"))
    least = 1e6 * 4 * d**3 / found["peak_double_flops"]
    return (f"\n\nAn update of VITS-II needs at least a product of two matrices and an inverse, 4 d^3 operations: {figure(least)} us at the peak in float64. "
            f"Batched NumPy takes {figure(theirs)} us and ours {figure(ours)}, so a program that did nothing else would be {figure(theirs / least)} times faster than NumPy.\n"
            f"A step of LMC takes NumPy {figure(step_theirs)} us and ours {figure(step_ours)}, d random numbers and a product with a vector; "
            "what is left of a round is the world's, whose arms are drawn again with noise each time (`lints` has little else).")


def emd(rows):
    return table(["clouds", "d", "points", "ours, CPU ms", "POT, CPU ms", "ours / POT", "largest difference"],
                 [[row.get("shape", "posterior"), row.get("d", 2), f"{row['n']} x {row['m']}", figure(1e3 * row["our_seconds"]), figure(1e3 * row["pot_seconds"]), f"{row['ratio']:.2f}",
                   f"{row['largest_difference']:.0e}"] for row in rows])


def instructions():
    recorded = json.loads((ROOT / "tests/program/instructions.json").read_text(encoding="utf-8"))
    return table(["block", "million instructions"], [[name, figure(count / 1e6)] for name, count in recorded["counts"].items()])


def scale(found):
    cost = table(["number of", "from", "to", "CPU s", "", "exponent (95% interval)"],
                 [[row["what"], row["sizes"][0], row["sizes"][-1], figure(row["seconds"][0]), figure(row["seconds"][-1]),
                   f"{row['exponent']:.3f} ± {row['half_width']:.3f}"] for row in found["cost"]])
    memory = table(["number of", *[f"x {4**i}" for i in range(len(found["memory"][0]["sizes"]))]],
                   [line for row in found["memory"] for line in
                    ([f"{row['what']}, from {row['sizes'][0]}: tasks alone, MB", *[f"{b / 1e6:.1f}" for b in row["tasks_bytes"]]],
                     [f"{row['what']}, from {row['sizes'][0]}: with the reducer, MB", *[f"{b / 1e6:.1f}" for b in row["bytes"]]])])
    return (cost + "\n\nLargest resident set of the program. A task holds the evidence and one block's curves, so the memory of tasks does not depend on the number of runs; "
            "the reducer holds the curves of all runs of a setting.\n\n" + memory)


def exponents(rows):
    numbers = list(dict.fromkeys(row["number"] for row in rows))
    cell = {(row["sampler"], row["number"]): row for row in rows}

    def text(row):
        return "-" if row is None or row["exponent"] is None else f"{row['exponent']:.1f}, {row['last']:.1f} / {row['theory']}".replace("-0.0", "0.0")

    sizes = "; ".join(f"{number}: {max((row['sizes'] for row in rows if row['number'] == number), key=len)[0]} to "
                      f"{max((row['sizes'] for row in rows if row['number'] == number), key=len)[-1]}" for number in numbers)
    return (f"Doubled from {sizes}.\n\n" + table(["sampler", *numbers], [[sampler, *(text(cell.get((sampler, number))) for number in numbers)]
                                                                       for sampler in dict.fromkeys(row["sampler"] for row in rows)]))


def core(results):
    """The machine in one sentence, for readers who look for nothing but speeds."""
    found = results["machine"]
    return (f"*One core of an {found['processor']} (x86-64-v{found['instruction_level']}, peaks of {found['peak_float_flops'] / 1e9:.0f} Gflop/s in single and "
            f"{found['peak_double_flops'] / 1e9:.0f} in double precision), measured on {found['date']}: {programs(results)}.*")


def shares(results):
    """Share of the peak of a draw: a line for each sampler and its networks, a column for each dimension."""
    rows = [row for row in results["share"]["rows"] if row["draw_fraction_of_peak"] is not None]
    dimensions = list(dict.fromkeys(row["dimension"] for row in rows))
    lines = []
    for sampler in dict.fromkeys(row["sampler"] for row in rows):
        own = {row["dimension"]: row for row in rows if row["sampler"] == sampler}
        networks = ", ".join(str(tuple(row["hidden"])) for row in own.values() if row["hidden"])
        lines.append([f"`{sampler}` {networks}".strip(), *(percent(own[d]["draw_fraction_of_peak"]) for d in dimensions)])
    return table(["of the peak", *(f"d = {d}" for d in dimensions)], lines)


def costs(results):
    """What a draw costs in two and ten dimensions, and a whole round in the plane."""
    of = {}
    for row in results["bench"]["rows"]:
        of.setdefault((row["sampler"], row["dimension"]), row)      # the first has networks of the default size
    lines = []
    for sampler in COSTS:
        plane, ten = of[sampler, 2], of[sampler, 10]
        networks = f" (layers of {plane['hidden'][0]} and {ten['hidden'][0]})" if plane["hidden"] else ""
        lines.append([f"`{sampler}`{networks}", *(f"{figure(1e6 * row['seconds_per_draw'])} us" for row in (plane, ten)), f"{plane['rounds_per_second']:,.0f}".replace(",", " ")])
    return table(["sampler", "draw, d = 2", "draw, d = 10", "rounds per second, d = 2"], lines)


def compared(results):
    """How many times faster than a program in Python that does the same."""
    def of_turns(part, chosen):
        return [row["ratio"] for row in results.get(part, {}).get("rows", []) if chosen(row)]

    def diffts(peer, size):
        return lambda row: (row["ours"], row["peer_method"], row.get("hidden")) == ("diffts", "diffts", size) and row["peer"].startswith(peer)

    found = [("DiffTS as published (a loop, scikit-learn), layers of 100", of_turns("loops", diffts("Python", PUBLISHED)))]
    for size in (PUBLISHED, SMALL):
        found += [(f"DiffTS, layers of {size[0]}, {what}, batches of 100 and 1 024 runs", of_turns(part, diffts(peer, size)))
                  for what, part, peer in (("plain NumPy", "batches", "NumPy, plain"), ("tuned NumPy", "batches", "NumPy, tuned"), ("PyTorch", "torch", "PyTorch"))]
    found += [("Gaussian Thompson sampling in a loop", of_turns("loops", lambda row: row["ours"] == "ts")),
              ("the same, batches of 100 and 1 024 in NumPy", of_turns("batches", lambda row: row["ours"] == "ts"))]
    lines = [[what, "; ".join(map(within, ratios))] for what, ratios in found if ratios]
    lines += [[f"{name} in batches, NumPy, d = {row['d']}", figure(row["speed"])] for name, policy in (("VITS-I", "vits1"), ("VITS-II", "vits2"), ("LMC", "lmc"), ("LinTS", "lints"))
              for row in results["vits"]["rows"] if row["policy"] == policy]
    trained = [row["times_faster"] for of in results["training"]["rows"]["summary"].values() for name, row in of.items() if name != "scikit-learn"]
    distances = [1 / row["ratio"] for row in results["emd"]["rows"] if row["n"] == row["m"] == 500]
    for what, ratios in (("earth mover's distance of 500 points, POT", distances), ("training of a prior, scikit-learn", trained)):
        lines.append([what, f"{figure(min(ratios))} to {figure(max(ratios))}"])
    return table(["Python program", "times faster (lowest and highest turn)"], lines)


def networks(results):
    """What it takes to learn the networks of a prior."""
    seconds = [of["100 wide, else default"]["prior_seconds"] for of in results["training"]["rows"]["summary"].values()]
    return f"Learning 100 networks of 100 units takes {figure(min(seconds))} to {figure(max(seconds))} s on that core ([training](internals/performance.md#training))."


PAGE = """<!-- Written by tests/bench/performance_page.py: change that, not this page. -->
# Performance

Written by `tests/bench/performance_page.py` from what `tests/bench/peers.py` measured; no number here is typed by hand.

{machine}

CPU seconds of one core, never wall-clock time.
Other programs may have been running; so what is compared takes turns within one run, ratios are medians over turns with the lowest and highest beside them, and the peaks are measured again between the pieces of the work.

To measure again, on any machine:

    cmake --preset release && cmake --build --preset release
    tests/bench/peers.py -o peers.json
    tests/bench/performance_page.py peers.json

The first takes about {minutes} minutes of CPU time; `--only` names parts of it, and a part that is done stays in the file.
`build/release/thompson bench` alone measures every sampler in a minute and a half; PyTorch is optional (Debian's `python3-torch`).

## The floor

A round cannot take less than its operations at the measured peak, or its bytes at the measured bandwidth if nothing stays in a cache from round to round.
Counted are two operations for each weight of each network that a draw asks for (twice as many for a product with its Jacobian) and 2 d K for the scores of the arms, these at the peak in float64; features of all arms (8 d K bytes), evidence, and the networks' weights once for each block.
Random numbers, the algebra of the posterior and the rewards are work too but not counted, so 1 in the last column is out of reach, unless bytes are the larger and do stay in a cache.
{floor}

## Every sampler

`thompson bench`: draws by themselves after n observations, and rounds of whole simulations; the first share of the peak is of the draw (products of networks), the second of the round (with the scores of the arms).
The prior is Gaussian, its diffusion model learned with few steps; the last rows have hidden layers of the published size in the plane.
Above 100% of memory: the data stay in a cache.

{bench}

## Goals

Set before anything was measured, and met or not; what is left where a goal is missed, and what was tried, stands in [floors](floors.md), goals of many ranks [on a cluster](cluster.md#how-far-it-scales):

{goals}

## Where the gain is small

Less than {little} times faster than a program in Python that does the same in batches.
Of DiffTS with networks of the published size both sides spend most of their time in products of matrices, which a batch of 1 024 runs in PyTorch or NumPy makes nearly as well.

{small_gains}

## Python, one run at a time

DiffTS paper, Section 6.2: d = 2, 100 arms, 200 rounds, T = 100, prior of the cross.
DiffTS as published predicts row by row with a scikit-learn regressor for each stage; ours runs in blocks of 64.

{loops}

## Python, batches

The same in NumPy, many runs at once: plain is Algorithm 2 as it reads with a batch axis; tuned prepares all stages of a round at once and works in place (`tests/bench/peer_bandit.py`).

{batches}

{torch}

## The same posterior

Peers and ours have the same networks and the same histories.

{posterior}

## Particles

{twisted}

## Training

{training}

The one network of a denoiser (`localised`, `tests/bench/bench_denoiser.c`), with its default widths and batches: its gradient alone, which was to reach half of the peak, and whole steps.
Both count the products of the network; a step also draws cases, takes the moments of the mixture of ten that the network corrects in double precision, and averages the weights.

{denoiser}

## Variational and Langevin samplers

{vits}{vits_floor}

A draw after a new observation with default settings (`thompson bench`), and the share of the peak in float64 that the products of its algorithm would take (`thompson bench --share`); random numbers, guards, and the products that a bound on the step takes where the matrix itself does not decide are not counted.

{gradient}

## Particles, Langevin steps and rejection

What a draw does at least (`tests/bench/bench_floors.c`), one run after 100 observations in blocks of 64, and how long this takes at the rates of the machine, one after the other: operations at the peak, bytes that no cache holds at the rate of memory, random numbers and exponentials as fast as this program makes them, densities of a prior in the plane at the rate of its own function.

{floors}

A Cholesky factor (`tests/bench/bench_factors.c`), 64 matrices side by side and one by one:

{factors}

## Instructions

Counted by callgrind on AVX2, of one block of 64 runs and few rounds, creation included (`tests/program/program_instructions.py`, which fails where a count grows by 2%); a change of speed is seen here without a clock.

{instructions}

## Earth mover's distance

Draws of one posterior, one of two such clouds half a standard deviation away (shifted), and standard normal points.

{emd}

## How cost grows

DiffTS in the plane, hidden (20, 20); each number is doubled four times with the others fixed.

{scale}

Every sampler, a draw after n observations with taking in the last of them: the exponent of its CPU time by least squares, then that of the last doubling, then what theory says of the terms that grow fastest (`tests/bench/cost_exponents.py` has the reasons).
A number below theory's says that lower terms still weigh: networks and random numbers cost the same in all small dimensions, and vectors fill better.

{exponents}
"""


def measurements(results):
    """The page of all measurements."""
    writers = {"bench": every_sampler, "loops": peers, "batches": peers, "torch": peers, "posterior": posterior, "twisted": twisted, "training": training,
               "denoiser": denoiser, "vits": vits, "gradient": gradient, "floors": floors, "factors": factors, "emd": emd, "scale": scale, "exponents": exponents}
    parts = {name: section(results, name, write) for name, write in writers.items()}
    seconds = sum(results[name].get("seconds", 0) for name in writers if name in results)
    return PAGE.format(machine=machine(results), goals=goals(results), little=LITTLE, small_gains=small_gains(results), floor="\n" + section(results, "bench", floor),
                       minutes=max(1, round(seconds / 60)), instructions=instructions(),
                       vits_floor=section(results, "vits", lambda rows: vits_floor(rows, results["machine"])), **parts)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    results = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    (ROOT / "docs/internals/performance.md").write_text(measurements(results), encoding="utf-8")
    page = ROOT / "docs/performance.md"
    text = page.read_text(encoding="utf-8")
    for name, write in {"machine": core, "share": shares, "bench": costs, "training": networks, "peers": compared}.items():
        text = pages.replaced(text, name, write(results))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

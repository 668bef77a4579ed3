#!/usr/bin/env python3
"""Artificial ratings in the formats of the public MovieLens sets, so that the tests run anywhere. All numbers are random, none is real.

Writes samples/ratings_1m.dat (user::movie::rating::timestamp), the same ratings as ratings_1m_no_timestamp.dat.gz,
ratings_100k.data (separated by tabs) and ratings.csv (with a header), next to this script. Building and testing do not need this script.
"""
import gzip
import pathlib

import numpy as np

USERS, MOVIES, RANK, SHARE, NOISE = 40, 30, 3, 0.35, 0.4
FOLDER = pathlib.Path(__file__).resolve().parent / "samples"


def made_ratings(rng):
    """Rows (user id, movie id, stars from 1 to 5, seconds), each pair once; the ids have gaps, as in the real data."""
    user_ids = np.sort(rng.choice(np.arange(1, 3 * USERS), USERS, replace=False))
    movie_ids = np.sort(rng.choice(np.arange(1, 5 * MOVIES), MOVIES, replace=False))
    taste = rng.standard_normal((USERS, RANK)) @ rng.standard_normal((RANK, MOVIES)) / RANK ** 0.5
    stars = np.clip(np.rint(3.5 + taste + NOISE * rng.standard_normal(taste.shape)), 1, 5).astype(int)
    users, movies = np.nonzero(rng.uniform(size=stars.shape) < SHARE)
    seconds = rng.integers(900_000_000, 1_000_000_000, len(users))
    return [(user_ids[u], movie_ids[m], stars[u, m], s) for u, m, s in zip(users, movies, seconds)]


def write(name, lines):
    text = "".join(f"{line}\n" for line in lines).encode()
    path = FOLDER / name
    if path.suffix == ".gz":
        with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
            file.write(text)
    else:
        path.write_bytes(text)
    print(path)


def main():
    rng = np.random.default_rng(1)
    rows = made_ratings(rng)
    FOLDER.mkdir(exist_ok=True)
    write("ratings_1m.dat", ["::".join(map(str, row)) for row in rows])
    write("ratings_1m_no_timestamp.dat.gz", ["::".join(map(str, row[:3])) for row in rows])
    shuffled = [rows[i] for i in rng.permutation(len(rows))]  # 100K is unsorted
    write("ratings_100k.data", ["\t".join(map(str, row)) for row in shuffled])
    write("ratings.csv", ["userId,movieId,rating,timestamp"] + [f"{u},{m},{s:.1f},{t}" for u, m, s, t in rows])


if __name__ == "__main__":
    main()

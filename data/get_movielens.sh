#!/bin/sh
# Purpose: MovieLens 1M for jobs/figure3_linear.yaml and figure3_logistic.yaml: says where to get it and under which
#          licence, checks your copy, and makes data/movielens.nc from it. Downloads nothing.
# Cost:    3 s
# Output:  data/movielens.nc, which holds vectors of movies and users but no individual ratings
set -eu

usage() {
  cat <<'TEXT'
usage: data/get_movielens.sh RATINGS

RATINGS is ratings.dat of MovieLens 1M, or a copy of its first three columns, gzip or not.

Where:    ml-1m.zip from https://grouplens.org/datasets/movielens/1m/ (GroupLens, University of Minnesota)
Licence:  research use; no redistribution without separate permission; no commercial use; see the README in the zip file.
Cite:     F. Maxwell Harper and Joseph A. Konstan. 2015. The MovieLens Datasets: History and Context.
          ACM Transactions on Interactive Intelligent Systems 5, 4, Article 19. https://doi.org/10.1145/2827872
Not to be put into this repository, nor anything that reveals single ratings.

The program is taken from THOMPSON, or build/user/thompson.
TEXT
}

fail() {
  echo "get_movielens.sh: $1" >&2
  exit "$2"
}

case "${1-}" in
"" | -h | --help)
  usage
  exit 0
  ;;
esac
[ $# -eq 1 ] || fail "one file of ratings; see --help" 2
[ -r "$1" ] || fail "cannot read $1" 4
command -v sha256sum >/dev/null || fail "sha256sum is missing (package coreutils)" 4

# The checksum of the first three columns, sorted by user and movie: the same for ratings.dat, with its own order and time stamps, and
# for copies without them.
expected=be2b1c5d3fcd73e17a17f953249f8653354832268f250857aaa7e6307725b02c
sum=$(gzip -cdf "$1" | awk -F:: '{ print $1 "::" $2 "::" $3 }' | LC_ALL=C sort | sha256sum | cut -d ' ' -f 1)
[ "$sum" = "$expected" ] ||
  fail "$1 does not hold the 1 000 209 ratings of MovieLens 1M (sum of its sorted first three columns: $sum)" 3
echo "get_movielens.sh: $1 holds the ratings of MovieLens 1M"

here=$(cd "$(dirname "$0")/.." && pwd)
"${THOMPSON:-$here/build/user/thompson}" prepare movielens "$1" -o "$here/data/movielens.nc"

#!/bin/sh
# Purpose: MNIST for jobs/figure5_linear.yaml and figure5_logistic.yaml: says where to get it, checks your copy, and makes
#          data/mnist.nc from it. Downloads nothing.
# Cost:    6 s
# Output:  data/mnist.nc: embeddings of all digits, and linear models
set -eu

usage() {
  cat <<'TEXT'
usage: data/get_mnist.sh FOLDER

FOLDER holds the four IDX files, gzip or not: train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte,
t10k-labels-idx1-ubyte, with or without .gz.

Where:    http://yann.lecun.com/exdb/mnist/, or one of its many mirrors (Yann LeCun, Corinna Cortes, Christopher Burges)
Licence:  see there; derived from NIST's Special Databases 1 and 3.
Not to be put into this repository.

The program is taken from THOMPSON, or build/user/thompson.
TEXT
}

fail() {
  echo "get_mnist.sh: $1" >&2
  exit "$2"
}

case "${1-}" in
"" | -h | --help)
  usage
  exit 0
  ;;
esac
[ $# -eq 1 ] || fail "one folder; see --help" 2
[ -d "$1" ] || fail "$1 is not a folder" 4
command -v sha256sum >/dev/null || fail "sha256sum is missing (package coreutils)" 4

folder=$1
set --
# Sets `file` to the file of that name; its unpacked bytes must have this checksum.
check() {
  file=$folder/$1
  [ -r "$file" ] || file=$file.gz
  [ -r "$file" ] || fail "$folder has neither $1 nor $1.gz" 4
  sum=$(gzip -cdf "$file" | sha256sum | cut -d ' ' -f 1)
  [ "$sum" = "$2" ] || fail "$file is not the file of MNIST (sum of its unpacked bytes: $sum)" 3
  echo "get_mnist.sh: $file is right"
}
check train-images-idx3-ubyte ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db
set -- "$@" "$file"
check train-labels-idx1-ubyte 65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5
set -- "$@" "$file"
check t10k-images-idx3-ubyte 0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7
set -- "$@" "$file"
check t10k-labels-idx1-ubyte ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2
set -- "$@" "$file"

here=$(cd "$(dirname "$0")/.." && pwd)
"${THOMPSON:-$here/build/user/thompson}" prepare mnist "$@" -o "$here/data/mnist.nc"

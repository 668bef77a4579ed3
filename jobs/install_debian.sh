#!/bin/sh
# Purpose: install the Debian packages needed to build, test and run thompson and to draw its results.
# Cost:    a download on a bare system; nothing at all if everything is installed.
# Output:  none; calls apt-get only if a package is missing (as root, or through sudo).
set -eu

packages="
build-essential cmake ninja-build pkg-config clang-format git
libopenmpi-dev openmpi-bin libscalapack-openmpi-dev libnetcdf-dev libcunit1-dev librandom123-dev libsleef-dev
libyaml-dev libjansson-dev libopenblas-dev liblapacke-dev libssl-dev zlib1g-dev
netcdf-bin nco
python3 python3-numpy python3-scipy python3-xarray python3-netcdf4 python3-yaml python3-matplotlib python3-pandas python3-sklearn python3-pot
"

# Debian 12 has it, Debian 13 does not; figure_diffts_3.py works without it.
optional="umap-learn"

fail() {
  echo "install_debian.sh: $1" >&2
  exit 1
}

tests="
slurm-wlm slurm-wlm-basic-plugins slurm-client munge valgrind clang clang-tidy libclang-rt-dev lld
chromium chromium-driver python3-selenium python3-jsonschema python3-pip python3-setuptools python3-wheel
"

case "${1-}" in
"") ;;
--tests) packages="$packages$tests" ;;
-h | --help)
  echo "usage: jobs/install_debian.sh [--tests]"
  echo "Installs what is missing of:$packages"
  echo "With --tests, for the tests under a Slurm of their own, in a browser, by clang, by pip, and the one that counts instructions, also:$tests"
  exit 0
  ;;
*) fail "unknown argument '$1'; see --help" ;;
esac

command -v apt-get >/dev/null ||
  fail "this is not a Debian system; --help lists the packages whose equivalents are needed"

missing=
for package in $packages; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || state=absent
  [ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "install_debian.sh: all packages are installed"
  exit 0
fi
echo "install_debian.sh: installing$missing"

as_root=
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "not root and no sudo; ask an administrator to install:$missing"
  as_root=sudo
fi
$as_root apt-get update || fail "apt-get update failed: is there a network, and are the sources right?"
for package in $optional; do
  [ -z "$(apt-cache madison "$package")" ] || missing="$missing $package"
done
# shellcheck disable=SC2086  # split into one word per package
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing ||
  fail "apt-get could not install:$missing"

# Purpose: the environment in which thompson runs well on one machine, for scripts to source: Open MPI over shared memory, and a Python
#          with the packages of analysis/ first in the path. Variables that the user has set keep their values.
# Cost:    none
# Output:  exported variables
# shellcheck shell=bash
default() { [ -n "${!1-}" ] || export "$1=$2"; }

default OMPI_MCA_rmaps_base_oversubscribe 1      # allow more ranks than cores
default OMPI_MCA_hwloc_base_binding_policy none  # otherwise two simultaneous jobs would share core 0
default PRTE_MCA_rmaps_default_mapping_policy :oversubscribe # both settings under their names in Open MPI 5
default PRTE_MCA_hwloc_default_binding_policy none
default OMPI_MCA_pml ob1                         # no probing of networks: MPI_Init takes 0.02 s instead of 0.2 s
default OMPI_MCA_btl self,vader
default OMPI_MCA_orte_allowed_exit_without_sync 1 # a rank whose MPI crashes on exit, after the work, has not failed
default PRTE_MCA_prte_allowed_exit_without_sync 1 # its name in Open MPI 5
default OMPI_MCA_mpi_yield_when_idle 1           # a waiting rank leaves its core to others
default OPENBLAS_NUM_THREADS 1                   # ranks are the only parallelism
if [ "$(id -u)" -eq 0 ]; then
  default OMPI_ALLOW_RUN_AS_ROOT 1
  default OMPI_ALLOW_RUN_AS_ROOT_CONFIRM 1
fi

# Put Debian's own interpreter ahead of any other python3 in the path, which may lack Debian's packages.
python_is_complete() { "$1" -c 'import numpy, scipy, xarray, netCDF4, yaml, matplotlib, pandas' 2>/dev/null; }
for python in /usr/bin/python3 python3; do
  python_is_complete "$python" && default THOMPSON_PYTHON "$python"
done
if ! python_is_complete "${THOMPSON_PYTHON-python3}"; then
  echo "${THOMPSON_PYTHON-python3} lacks numpy, scipy, xarray, netCDF4, yaml, matplotlib or pandas; run jobs/install_debian.sh" >&2
  return 1
fi
# For the scripts of analysis/, whose first line asks for python3.
python_is_complete python3 || PATH=$(dirname "$THOMPSON_PYTHON"):$PATH

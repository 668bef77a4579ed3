/* Classic NetCDF files, which earlier versions of the program wrote and users still do. */
#pragma once

#include "core/status.h"

/* Turns a file that the program wrote into a classic one (CDF-5) with its checksum. */
Status classic_convert(const char *path);

"""Values of NetCDF variables, for comparisons to the byte."""


def values_of(variable):
    """All values of a netCDF4 variable. Texts other than ASCII are strings, whose bytes would be addresses."""
    return list(variable[...]) if variable.dtype is str else variable[...].tobytes()

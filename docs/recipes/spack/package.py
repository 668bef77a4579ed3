# Spack package of thompson. Copy this folder into a repository of your own as packages/thompson/, or:
#   spack repo create mine && mkdir -p mine/packages/thompson && cp package.py mine/packages/thompson/ && spack repo add mine
#   spack install thompson
# Not tested: written from Spack's documentation.
from spack.package import *


class Thompson(CMakePackage):
    """Posterior sampling for contextual bandits with rich priors, at cluster scale."""

    version("local", branch="main")

    variant("scalapack", default=True, description="Matrices spread over ranks")

    depends_on("c", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("netcdf-c~mpi")
    depends_on("hdf5~mpi")
    depends_on("libyaml")
    depends_on("jansson")
    depends_on("openssl")
    depends_on("zlib-api")
    depends_on("random123")
    depends_on("sleef")
    depends_on("openblas")
    depends_on("netlib-lapack+lapacke", when="^[virtuals=lapack] netlib-lapack")
    depends_on("scalapack", when="+scalapack")

    def cmake_args(self):
        return [self.define("BUILD_TESTING", False), self.define("THOMPSON_SCALAPACK", "ON" if "+scalapack" in self.spec else "OFF")]

# A recipe for Spack. Its syntax is checked by tests/scripts/packaging.sh; it has not been built with Spack.
# To use it: mkdir -p REPO/packages/ulfm, copy this file there, and `spack repo add REPO`.
import os

from spack.package import *


class Ulfm(Package):
    """User-level fast message: MPI, NX/2 and ports over shared memory, libfabric and emulated interconnects."""

    license("BSD-3-Clause")
    version("main", branch="main")

    provides("mpi@:3.1")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("patchelf", type="build")
    depends_on("hwloc@2:")
    depends_on("libfabric@1.17:")
    depends_on("isa-l")
    depends_on("libsodium")
    depends_on("fmt@9:", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("cli11@2:", type="build")
    depends_on("nlohmann-json@3:", type="build")

    def install(self, spec, prefix):
        tarball = os.environ.get("ULFM_MPICH_SOURCE", "")
        if not tarball:
            raise InstallError("ULFM_MPICH_SOURCE must name MPICH's release tarball, mpich-4.0.2.tar.gz")
        dev = Executable("./dev")
        dev.add_default_env("ULFM_NO_PACKAGES", "1")
        dev.add_default_env("XDG_CACHE_HOME", join_path(self.stage.path, "cache"))
        dev("setup", "-DULFM_MPICH_SOURCE=" + tarball)
        dev("install", prefix)

"""The MPI libraries that are compared, the programs built with each, and how a job of each is started."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from .machine import STAGE, TOP, output_of

SOURCES = TOP / "bench" / "mpi"
EXAMPLES = TOP / "examples" / "mpi"
BUILT = TOP / "build" / "bench"
PACKAGES = {"openmpi": ["openmpi-bin", "libopenmpi-dev"], "mpich-ch4": ["mpich", "libmpich-dev"]}
# What one job may take before it counts as hanging.
LONGEST = 600


def compiled(source, name):
    """A program of ours that uses no library, built when it is not there as its source is."""
    built = BUILT / name
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        built.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-O2", "-o", str(built), str(source)], check=True)
    return str(built)


class Failure(Exception):
    """A sentence for whoever runs the benchmark."""


class TooSlow(Failure):
    """A job has not ended in the time it was given."""


@dataclass
class Library:
    name: str
    compiler: str
    launcher: list
    version: str = ""
    environment: dict = field(default_factory=dict)

    def program(self, name):
        """The program built with this library, from bench/mpi or else examples/mpi."""
        source = SOURCES / f"{name}.c"
        if not source.exists():
            source = EXAMPLES / f"{name}.c"
        built = BUILT / self.name / name
        inputs = [source, *source.parent.glob("*.h")]
        # A program finds its library where its compiler was.
        compiler = built.with_name(built.name + ".compiler")
        if (not built.exists() or built.stat().st_mtime < max(i.stat().st_mtime for i in inputs)
                or not compiler.exists() or compiler.read_text() != self.compiler):
            built.parent.mkdir(parents=True, exist_ok=True)
            compiler.write_text(self.compiler)
            # MPICH's header declares MPI_STATUSES_IGNORE so that GCC 12 takes it for an array of no elements.
            command = [self.compiler, "-O2", "-Wno-stringop-overflow", "-o", str(built), str(source), "-lm"]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode != 0:
                raise Failure(f"{source.name} does not compile with {self.name}:\n{done.stderr}")
        return str(built)

    def run(self, ranks, name, *arguments, pin=None, longest=LONGEST):
        """Standard output of a job. `pin`: cores of the ranks, in turn. `longest`: seconds until it counts as hanging."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("ULFM_", "BENCH_"))}
        environment.update(self.environment)
        if pin:
            environment["BENCH_CORES"] = ",".join(map(str, pin))
        # The launcher alone is asked to end, and ends its ranks.
        command = ["timeout", "--foreground", "--kill-after=10", str(longest), *self.launcher, "-n", str(ranks), self.program(name),
                   *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL)
        if done.returncode in (124, 137):
            raise TooSlow(f"{self.name}: {name} on {ranks} ranks did not end within {longest} s")
        if done.returncode != 0:
            raise Failure(f"{self.name}: {name} on {ranks} ranks ended with {done.returncode}:\n"
                          f"{(done.stdout + done.stderr)[-2000:]}")
        return done.stdout


def install(packages):
    """Debian packages that are missing, as root."""
    missing = [p for p in packages if output_of("dpkg-query", "-W", "-f", "${db:Status-Status}", p) != "installed"]
    if not missing:
        return
    print(f"bench: installing {' '.join(missing)}", file=sys.stderr)
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    for command in (["apt-get", "-q", "update"], ["apt-get", "-q", "install", "-y", "--no-install-recommends", *missing]):
        done = subprocess.run([*root, "env", "DEBIAN_FRONTEND=noninteractive", *command], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"these packages could not be installed; install them yourself or leave the library out with "
                          f"--without:\n  apt-get install {' '.join(missing)}\n{done.stderr[-2000:]}")


def first_match(pattern, text):
    found = re.search(pattern, text)
    return found.group(1) if found else "unknown"


def mpich_version(text):
    return " ".join(first_match(rf"MPICH {what}:\s*(\S+)", text) for what in ("Version", "Device"))


def ulfm():
    launcher = STAGE / "bin" / "mpiexec"
    if not launcher.exists():
        raise Failure("build/stage has no mpiexec: run ./dev setup first")
    version = first_match(r"(\d+\.\d+\.\d+)", output_of(str(STAGE / "bin" / "ulfm_info"), "--version"))
    return Library("ulfm", str(STAGE / "bin" / "mpicc"), [str(launcher)], version)


def openmpi():
    install(PACKAGES["openmpi"])
    version = first_match(r"\) (\S+)", output_of("mpiexec.openmpi", "--version"))
    return Library("openmpi", "mpicc.openmpi", ["mpiexec.openmpi", "--oversubscribe", "--bind-to", "none"], version,
                   {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})


def mpich_ch4():
    install(PACKAGES["mpich-ch4"])
    text = output_of("mpichversion.mpich") or output_of("mpichversion")
    return Library("mpich-ch4", "mpicc.mpich", ["mpiexec.mpich"], mpich_version(text))


def nemesis():
    """MPICH's own ch3:nemesis of the version that ULFM is built with, and with its options."""
    done = subprocess.run([str(TOP / "netmod" / "mpich" / "build"), "--stock"], stdout=subprocess.PIPE, text=True)
    prefix = Path(done.stdout.strip() or "/nonexistent")
    if done.returncode != 0 or not (prefix / "bin" / "mpicc").exists():
        raise Failure("stock MPICH could not be built; leave it out with --without nemesis")
    text = output_of(str(prefix / "bin" / "mpichversion"))
    return Library("nemesis", str(prefix / "bin" / "mpicc"), [str(prefix / "bin" / "mpiexec")], mpich_version(text))


def mpich_ofi():
    """The same MPICH with ch4:ofi, which Debian does not have."""
    done = subprocess.run([str(TOP / "bench" / "hosts" / "mpich_ofi")], stdout=subprocess.PIPE, text=True)
    prefix = Path(done.stdout.strip() or "/nonexistent")
    if done.returncode != 0 or not (prefix / "bin" / "mpicc").exists():
        raise Failure("MPICH with ch4:ofi could not be built; leave it out with --without mpich-ofi")
    return Library("mpich-ofi", str(prefix / "bin" / "mpicc"), [str(prefix / "bin" / "mpiexec")],
                   mpich_version(output_of(str(prefix / "bin" / "mpichversion"))))


# Those that are compared over several hosts only.
ELSEWHERE = {"mpich-ofi": mpich_ofi}
PEERS = {"openmpi": openmpi, "mpich-ch4": mpich_ch4, "nemesis": nemesis}


def prepare(without, elsewhere=False):
    """ULFM first, then the peers; with those of several hosts when asked for."""
    for tool in ("dpkg-query", "apt-get"):
        if shutil.which(tool) is None and set(PEERS) - set(without) - {"nemesis"}:
            raise Failure(f"the peers are Debian packages and there is no {tool} here: leave them out with --without")
    peers = {**PEERS, **(ELSEWHERE if elsewhere else {})}
    return [ulfm(), *(make() for name, make in peers.items() if name not in without)]

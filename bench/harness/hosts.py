"""The benchmarks over several hosts, which are namespaces of this machine with cables between them. `python3 -m harness.hosts
TASK` is the part that runs inside, started by bench/hosts/inside; it prints the samples as JSON."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from .libraries import Failure, compiled
from .machine import STAGE, TOP
from .rounds import collected, measure, pinned

SHARE = 8  # of the repetitions that the same programs do within a host
SIZES = ("0", "4M")
DEVICE = "eth0"
# What each library needs to start on hosts by our launcher, and to take the cable and not a decoy.
OPTIONS = {
    "ulfm": ["-hosts", "{hosts}", "-launcher", "ssh", "-launcher-exec", "{launcher}"],
    "nemesis": ["-hosts", "{hosts}", "-launcher", "ssh", "-launcher-exec", "{launcher}"],
    "openmpi": ["--host", "{slots}", "--mca", "plm_rsh_agent", "{launcher}", "--mca", "btl", "tcp,self,vader", "--mca", "pml", "ob1",
                "--mca", "btl_tcp_if_include", DEVICE, "--mca", "oob_tcp_if_include", DEVICE],
}
OPTIONS["mpich-ch4"] = OPTIONS["mpich-ofi"] = OPTIONS["nemesis"]
# Hydra tells nemesis the name of each host, by which it finds the cable's address.
ENVIRONMENT = {
    "mpich-ch4": {"UCX_NET_DEVICES": DEVICE},
    "mpich-ofi": {"FI_TCP_IFACE": DEVICE, "FI_NET_IFACE": DEVICE, "FI_SOCKETS_IFACE": DEVICE},
}


class Hosts:
    """The hosts that this process stands beside."""

    def __init__(self, count):
        self.folder = Path(os.environ["BENCH_HOSTS"])
        self.names = [f"h{k + 1}" for k in range(count)]

    def on(self, k, *command):
        """A command on host k, 1 and up, in its network and under its name."""
        pid = (self.folder / f"h{k}.pid").read_text().strip()
        return ["nsenter", "-t", pid, "-n", "-u", "--", *command]

    def job(self, library, ranks, *command):
        """The command line of a job whose ranks take turns on the hosts."""
        launcher = str(STAGE / "bin" / "ulfmrun") if library["name"] == "ulfm" else library["launcher"][0]
        words = {"hosts": ",".join(self.names), "launcher": str(self.folder / "launch"),
                 "slots": ",".join(f"{name}:{ranks}" for name in self.names)}
        options = [word.format(**words) for word in OPTIONS[library["name"]]]
        turns = ["--map-by", "node"] if library["name"] == "openmpi" else ["-ppn", "1"]
        return self.on(1, launcher, *library["launcher"][1:], *options, "-n", str(ranks), *turns, *command)

    def run(self, library, ranks, *command, longest=120, **more):
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("ULFM_", "BENCH_CORES"))}
        environment.update(library["environment"], **ENVIRONMENT.get(library["name"], {}), **more)
        return output(self.job(library, ranks, *command), longest, environment)


def output(command, longest, environment=None):
    done = subprocess.run(["timeout", "--kill-after=10", str(longest), *command], capture_output=True, text=True, env=environment,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: ended with {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def lines(text, prefix=()):
    """Lines "what size value", or "size value" with the prefix in front."""
    found = {}
    for line in text.splitlines():
        words = [*prefix, *line.split()]
        if len(words) == 3:
            found[f"{words[0]} {words[1]}"] = float(words[2])
    return found


# ---- what runs inside ------------------------------------------------------------------------------------------------

def pinned_pair():
    both = pinned()
    return {"BENCH_CORES": ",".join(map(str, both))}, [str(both[0]), str(both[-1])]


def served(hosts, server, client):
    """A server on h2 and its client on h1, each on a core of its own: what the client prints."""
    _, (first, second) = pinned_pair()
    with subprocess.Popen(hosts.on(2, "taskset", "-c", second, *server), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        try:
            return output(hosts.on(1, "taskset", "-c", first, *client), 120)
        finally:
            child.terminate()


def of_mpi(hosts, library):
    cores, _ = pinned_pair()

    def program(name, *arguments, **more):
        return hosts.run(library, 2, library["programs"][name], *arguments, **more)

    return {**lines(program("latency", *SIZES, str(SHARE), **cores), ["latency"]),
            **lines(program("bandwidth", "1", SIZES[1], str(SHARE), **cores)),
            **lines(program("idle", "2", **cores), ["idle"])}


def of_tcp(hosts, tcp, wait):
    return lines(served(hosts, [tcp, "serve", "10.77.0.2", "7411"], [tcp, "10.77.0.2", "7411", wait, "0", str(4 << 20), str(SHARE)]))


def of_ports(hosts, library):
    """Raw ports over ofi: ulfm_perf as the two ranks of a job."""
    found = {}
    _, (first, second) = pinned_pair()
    for test, column, what in (("latency", "one_way_us", "latency"), ("bandwidth", "MB_per_s", "one")):
        text = hosts.run(library, 2, str(STAGE / "bin" / "ulfm_perf"), "--json", "--limit", "4", "--bind", f"{first},{second}",
                         "--size", "1:4M", test)
        for line in json.loads(text)["rows"]:
            found[f"{what} {line['size']}"] = line[column]
    return found


def of_fabtests(hosts, provider):
    """fi_pingpong of libfabric-bin: lines "bytes #sent #ack total time MB/sec usec/xfer Mxfers/sec"."""
    options = ["-p", provider, "-e", "msg", "-I", "200"]
    text = served(hosts, ["fi_pingpong", *options], ["sh", "-c", f"sleep 0.3; exec fi_pingpong {' '.join(options)} 10.77.0.2"])
    found = {}
    for words in map(str.split, text.splitlines()):
        size = re.fullmatch(r"(\d+)([km]?)", words[0]) if len(words) == 8 else None
        if size:
            found[f"latency {int(size[1]) << {'': 0, 'k': 10, 'm': 20}[size[2]]}"] = float(words[6])
    return found


def pairs(task):
    hosts = Hosts(2)
    contestants = {library["name"]: lambda library=library: of_mpi(hosts, library) for library in task["libraries"]}
    contestants["ports"] = lambda: of_ports(hosts, task["libraries"][0])
    contestants["tcp"] = lambda: of_tcp(hosts, task["tcp"], "block")
    contestants["tcp poll"] = lambda: of_tcp(hosts, task["tcp"], "poll")
    for provider in task["providers"]:
        contestants[f"fi_pingpong {provider}"] = lambda p=provider: of_fabtests(hosts, p)
    return measure(contestants, task["rounds"], False)


def for_each_count(task, of_job):
    """What `of_job` finds of a library's job of so many ranks, for all counts. A job of another library may fail."""
    hosts = Hosts(task["hosts"])

    def run(library):
        def of_count(ranks):
            return {f"{ranks} {key}": value for key, value in of_job(hosts, library, ranks).items()}

        return collected(library["name"], task["ranks"], of_count)

    return measure({library["name"]: lambda library=library: run(library) for library in task["libraries"]}, task["rounds"], False)


def many(task):
    """Jobs of many ranks: seconds from start to end of an empty program, and what a program finds after an alltoall and after
    sums over all: connections and resident memory of a rank."""
    def of_job(hosts, library, ranks):
        start = time.monotonic()
        hosts.run(library, ranks, library["programs"]["empty"], longest=60)
        found = {"start_s": time.monotonic() - start}
        for line in hosts.run(library, ranks, library["programs"]["connections"], longest=60).splitlines():
            words = line.split()
            if len(words) == 2:
                found[words[0]] = float(words[1])
        return found

    return for_each_count(task, of_job)


def crowded(task):
    """Collectives, with as many ranks as cores and with more."""
    return for_each_count(task, lambda hosts, library, ranks:
                          lines(hosts.run(library, ranks, library["programs"]["collectives"], *task["calls"], longest=60)))


def calls(task):
    """Every call of MPI in turn, by groups."""
    hosts = Hosts(task["hosts"])
    cores, _ = pinned_pair()

    def run(library):
        return collected(library["name"], task["groups"], lambda group: lines(
            hosts.run(library, 2, library["programs"]["calls"], group, longest=240, **cores)))

    return measure({library["name"]: lambda library=library: run(library) for library in task["libraries"]}, task["rounds"], False)


def inside():
    task = json.loads(Path(sys.argv[1]).read_text())
    samples = {"pairs": pairs, "many": many, "crowded": crowded, "calls": calls}[task["what"]](task)
    json.dump(samples, sys.stdout)


# ---- what runs outside -----------------------------------------------------------------------------------------------

def beside(count, task):
    """The samples of a task: key -> name -> values of all rounds."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(task, file)
        file.flush()
        environment = {**os.environ, "PYTHONPATH": str(TOP / "bench"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([str(TOP / "bench" / "hosts" / "inside"), str(count), sys.executable, "-m", "harness.hosts", file.name],
                              stdout=subprocess.PIPE, text=True, env=environment)
    if done.returncode == 77:
        raise Failure(f"no hosts here: {done.stdout.strip()}")
    if done.returncode != 0:
        raise Failure(f"the measurement on the hosts ended with {done.returncode}")
    samples = defaultdict(dict)
    for key, values in json.loads(done.stdout).items():
        samples[key] = values
    return samples


def described(library, programs):
    return {"name": library.name, "launcher": library.launcher, "environment": library.environment,
            "programs": {name: library.program(name) for name in programs}}


def tcp_program():
    return compiled(TOP / "bench" / "hosts" / "tcp.c", "hosts/tcp")


if __name__ == "__main__":
    try:
        inside()
    except Failure as failure:
        sys.exit(f"bench: {failure}")

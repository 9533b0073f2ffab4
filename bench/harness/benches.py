"""The benchmarks by name: what runs, what a row of it means, and what is aimed at."""

import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Callable

from . import hosts as several, plot
from .libraries import BUILT, Failure, TooSlow, compiled, install
from .machine import STAGE, TOP, cores, output_of
from .rounds import collected, measure, pinned, rounded, row, spread, ulfm_perf


@dataclass
class Bench:
    title: str
    rounds: int
    run: Callable  # (libraries, rounds) -> rows
    target: Callable = lambda row: None  # row -> what is aimed at, or None
    only_missed: bool = False  # the page has a sentence about all rows, and those that miss what is aimed at


@dataclass
class Aim:
    limit: float
    sign: str = "<="  # or ">="
    key: str = "ratio_best"  # of the row

    def met(self, line):
        value = line.get(self.key)
        return value is None or (value <= self.limit if self.sign == "<=" else value >= self.limit)

    def text(self, line):
        what = "" if self.key.startswith("ratio") else f" {self.key.split('_')[-1]}"
        return f"{self.sign} {self.limit}{what}{'' if self.met(line) else ', missed'}"


def table(text, columns=1):
    """Lines "key... value" as {keys: value}."""
    rows = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == columns + 1:
            rows[tuple(words[:columns])] = float(words[columns])
    return rows


def of_pairs(program, arguments, key, unit, more_is_better=False, columns=1):
    """A benchmark of two ranks, each on a core of its own."""

    def run(libraries, rounds):
        contestants = {
            library.name: lambda library=library: table(library.run(2, program, *arguments, pin=pinned()), columns)
            for library in libraries
        }
        samples = measure(contestants, rounds)
        return [row(key(words), values, unit, more_is_better) for words, values in samples.items()]

    return run


def sized(words):
    return {"size": int(words[0])}


def latency_target(row):
    size = row["size"]
    if size == 0:
        return Aim(0.95)
    if size in (8, 16) or 64 <= size <= 4096:
        return Aim(0.75)
    if 16384 <= size <= 262144:
        return Aim(0.85)
    return Aim(0.9) if size >= 2**20 else None


def directed(words):
    return {"direction": words[0], "size": int(words[1])}


def bandwidth_target(row):
    return Aim(1.25, ">=") if row["size"] <= 8192 else Aim(1.0, ">=")


def flood(libraries, rounds):
    """Senders that only send, to one receiver: with a core for each rank, and with more senders than cores."""
    def run(library):
        times = {}
        for ranks, source, sizes in ((2, "name", (4, 64, 1024)), (2, "any", (64,)), (3, "name", (64,)), (4, "name", (64,))):
            pin = pinned() if ranks == 2 else None
            for (size,), value in table(library.run(ranks, "flood", source, *sizes, pin=pin)).items():
                times[(ranks, source, int(size))] = value
        return times

    samples = measure({library.name: lambda library=library: run(library) for library in libraries}, rounds)
    return [row({"ranks": ranks, "source": source, "size": size}, values, "ms") for (ranks, source, size), values in samples.items()]


def threads(libraries, rounds):
    """Each number of threads in a job of its own. Where a peer does not end in a minute, 30,000 round trips of each thread,
    its column is empty and it is not asked again."""
    given_up = set()

    def run(library):
        times = {}
        for count in (1, 2, 4):
            if (library.name, count) in given_up:
                continue
            try:
                times.update(table(library.run(2, "threads", count, pin=pinned(), longest=60)))
            except TooSlow as slow:
                if library.name == "ulfm":
                    raise
                given_up.add((library.name, count))
                print(f"bench: {count} threads: {slow}", file=sys.stderr)
        return times

    samples = measure({library.name: lambda library=library: run(library) for library in libraries}, rounds)
    return [row({"threads": int(count)}, values, "us") for (count,), values in samples.items()]


GROUPS_OF_CALLS = ("sends", "types", "windows", "collectives", "objects")


def rows_of_calls(samples):
    """Rows of all calls that ULFM has a value for; a peer may lack some."""
    names = list(dict.fromkeys(name for values in samples.values() for name in values if name not in ("ulfm", "floor")))
    rows = []
    for (call, size), values in samples.items():
        line = row({"call": call, "size": int(size)}, values, "us")
        line["peers"] = {name: line["peers"].get(name) for name in names}
        rows.append({"ratio_best": None, **line})
    return rows


def calls(libraries, rounds):
    """Every call in turn, by groups."""
    def run(library):
        return collected(library.name, GROUPS_OF_CALLS, lambda group: table(
            library.run(2, "calls", group, pin=pinned(), longest=120), columns=2))

    return rows_of_calls(measure({library.name: lambda library=library: run(library) for library in libraries}, rounds))


# ---- many ranks ------------------------------------------------------------------------------------------------------

EVERY_COLLECTIVE = ["barrier", "bcast:8", "bcast:64K", "bcast:1M", "reduce:8", "reduce:256K", "reduce:1M", "allreduce:8",
                    "allreduce:64K", "allreduce:256K", "allreduce:1M", "allgather:64", "allgather:64K", "alltoall:64",
                    "alltoall:16K", "alltoall:64K"]


def timed_collectives(library, ranks, calls, pin=None):
    found = table(library.run(ranks, "collectives", *calls, pin=pin), columns=2)
    return {(ranks, what, int(size)): value for (what, size), value in found.items()}


def collectives(libraries, rounds):
    contestants = {
        library.name: lambda library=library: timed_collectives(library, len(pinned()), EVERY_COLLECTIVE, pinned())
        for library in libraries
    }
    return [row({"ranks": ranks, "what": what, "size": size}, values, "us")
            for (ranks, what, size), values in measure(contestants, rounds).items()]


def nonblocking(libraries, rounds):
    """The collectives that go by messages in every library: begun and waited for, and those of neighbours in a ring."""
    calls = ["ibarrier", "ibcast:8", "iallreduce:8", "iallreduce:64K", "iallgather:64", "ialltoall:64", "neighbor_allgather:64",
             "neighbor_alltoall:64", "neighbor_alltoall:64K", "ineighbor_alltoall:64"]
    rows = []
    for ranks in (2, 8, 32):
        pin = pinned() if ranks == 2 else None
        contestants = {library.name: lambda library=library: timed_collectives(library, ranks, calls, pin) for library in libraries}
        rows += [row({"ranks": n, "what": what, "size": size}, values, "us")
                 for (n, what, size), values in measure(contestants, rounds, False).items()]
    return [beside_openmpi(line, "us") for line in rows]


@contextmanager
def busy_cores(wanted):
    """A foreign process on each core that only computes, while the block runs."""
    processes = []
    try:
        for core in cores() if wanted else []:
            processes.append(subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"]))
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def oversubscribed(libraries, rounds):
    """8, 32 and 128 ranks on the cores there are; 8 once more with each core shared with a foreign process. The floor is
    a barrier of bare yields among so many processes."""
    rows = []
    for ranks, busy in ((8, False), (32, False), (128, False), (8, True)):
        calls = ["barrier", "allreduce:8", "alltoall:64"]

        def run(library):
            with busy_cores(busy):
                return timed_collectives(library, ranks, calls)

        def floor():
            with busy_cores(busy):
                done = output_of(compiled(TOP / "bench" / "turns.c", "turns"), str(ranks), str(200_000 // ranks))
            return {(ranks, what, int(size or 0)): float(done) for what, _, size in (c.partition(":") for c in calls)}

        contestants = {"floor": floor, **{library.name: lambda library=library: run(library) for library in libraries}}
        samples = measure(contestants, rounds, False)
        rows += [row({"ranks": n, "busy": busy, "what": what, "size": size}, values, "us")
                 for (n, what, size), values in samples.items()]
    return [beside_openmpi(line, "us") for line in rows]


def beside_openmpi(line, unit):
    if "openmpi" in line["peers"]:
        line["ratio_openmpi"] = float(f"{line[f'ulfm_{unit}'] / line['peers']['openmpi']:.4g}")
    return line


def idle_target(row):
    return Aim(1, key="ulfm_value")  # percent of a core, and microseconds


def startup(libraries, rounds):
    def run(library):
        seconds = {}
        for ranks in (2, 8, 32, 128):
            start = time.monotonic()
            library.run(ranks, "empty")
            seconds[(ranks,)] = time.monotonic() - start
        return seconds

    for library in libraries:
        library.program("empty")
    samples = measure({library.name: lambda library=library: run(library) for library in libraries}, rounds, False)
    return [beside_openmpi(row({"ranks": ranks}, values, "s"), "s") for (ranks,), values in samples.items()]


def setup(_libraries, rounds):
    """What somebody waits who clones the project and types ./dev demo, on a machine with the packages but with nothing
    compiled before: until the demo's first line, and until its end."""
    def run():
        with tempfile.TemporaryDirectory(prefix="ulfm-setup-") as folder:
            clone = Path(folder) / "ulfm"
            subprocess.run(["git", "clone", "-q", str(TOP), str(clone)], check=True)
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("ULFM_", "CCACHE_", "CMAKE_"))}
            environment.update(XDG_CACHE_HOME=str(Path(folder) / "cache"), CCACHE_DISABLE="1")
            start = time.monotonic()
            with subprocess.Popen([str(clone / "dev"), "demo"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  env=environment) as child:
                child.stdout.readline()
                first = time.monotonic() - start
                child.stdout.read()
            if child.returncode != 0:
                raise Failure(f"./dev demo in a fresh clone ended with {child.returncode}")
            return {("first line",): first, ("end",): time.monotonic() - start}

    samples = measure({"ulfm": run}, rounds, False)
    return [row({"what": what}, values, "s") for (what,), values in samples.items()]


def memory(libraries, rounds):
    contestants = {
        library.name: lambda library=library: {(ranks,): float(library.run(ranks, "memory")) / 1e6 for ranks in (16, 128)}
        for library in libraries
    }
    return [row({"ranks": ranks}, values, "MB") for (ranks,), values in measure(contestants, rounds, False).items()]


def idle(libraries, rounds):
    contestants = {library.name: lambda library=library: table(library.run(2, "idle", 5, pin=pinned())) for library in libraries}
    samples = measure(contestants, rounds, False)
    return [row({"what": what}, values, "value") for (what,), values in samples.items()]


def apps(libraries, rounds):
    def run(library):
        times = {}
        for ranks in (2, 8, 32):
            for program in ("pi", "mm", "lu", "halo"):
                found = re.search(r"time ([0-9.e+-]+) s", library.run(ranks, program))
                if found is None:
                    raise Failure(f"{program} printed no time")
                times[(program, ranks)] = float(found.group(1)) * 1e3
        return times

    samples = measure({library.name: lambda library=library: run(library) for library in libraries}, rounds, False)
    return [row({"program": program, "ranks": ranks}, values, "ms") for (program, ranks), values in samples.items()]


# ---- without MPI -----------------------------------------------------------------------------------------------------

def ports(_libraries, rounds):
    """Raw ports beside the floor."""
    def run():
        rows = ulfm_perf("latency", "--bind", ",".join(map(str, pinned())), "--size", "1:64K")
        return {(int(r["size"]),): r["one_way_us"] for r in rows}

    return [row({"size": size}, values, "us") for (size,), values in measure({"ulfm": run}, rounds).items()]


def paths(_libraries, rounds):
    """The paper's three ways of a message, beside its figures; one call of ulfm_perf lets them take turns."""
    samples, paper = defaultdict(lambda: defaultdict(list)), {}
    for _ in range(rounds):
        for r in ulfm_perf("paths", "--bind", ",".join(map(str, pinned()))):
            for name, column in (("ulfm", "ulsr_us"), ("ulskrc", "ulskrc_us"), ("ksrc2", "ksrc2_us"), ("floor", "floor_us")):
                samples[r["size"]][name].append(r[column])
            paper[r["size"]] = {key: value for key, value in r.items() if key.startswith("paper_")}
    rows = []
    for size, values in samples.items():
        line = row({"size": size}, values, "us")
        line["MB_s"] = float(f"{size / line['ulfm_us']:.4g}")
        for name in ("ulskrc", "ksrc2"):
            line[f"{name}_ratio"] = float(f"{line['peers'][name] / line['ulfm_us']:.4g}")
        rows.append({**line, **paper[size]})
    return rows


def logp(_libraries, rounds):
    """The parameters of LogGP of every transport."""
    names = ("o_s_us", "o_r_us", "L_us", "g_us", "G_ns_per_byte")

    def run():
        return {(r["transport"], name): r[name] for r in ulfm_perf("logp", "--bind", ",".join(map(str, pinned()))) for name in names}

    rows = {}
    for (transport, name), values in measure({"ulfm": run}, rounds).items():
        line = rows.setdefault(transport, {"transport": transport, "floor_us": rounded(statistics.median(values["floor"])),
                                           "peers": {}, "spread": {}})
        line[name] = rounded(statistics.median(values["ulfm"]))
        line["spread"][name] = [rounded(v) for v in spread(values["ulfm"])]
    return list(rows.values())


def over(library, *options):
    """The same library, over an interconnect of ulfmrun's."""
    return replace(library, launcher=[str(STAGE / "bin" / "ulfmrun"), *options])


def ways_there(rounds, sizes, ports_ways, mpi_ways):
    """One way, by raw ports and by MPI, over several interconnects. `ports_ways`: name -> options of ulfm_perf; `mpi_ways`:
    name -> library."""
    rows = []
    bound = ("--bind", ",".join(map(str, pinned())))
    for size in sizes:
        contestants = {}
        for name, options in ports_ways.items():
            arguments = (*bound, "--size", size, *options)
            contestants[name] = lambda a=arguments: {(): ulfm_perf("latency", *a)[0]["one_way_us"]}
        for name, library in mpi_ways.items():
            contestants[name] = lambda l=library, s=size: {(): one_latency(l, s)}
        samples = measure(contestants, rounds)[()]
        for name in contestants:
            line = row({"size": size, "way": name}, {"ulfm": samples[name], "floor": samples["floor"]}, "us")
            line["MB_s"] = float(f"{size / line['ulfm_us']:.4g}")
            rows.append(line)
    return rows


def xswitch(libraries, rounds):
    """One way over 1, 2 and 4 switches, beside `direct`: ports, and MPI over one switch."""
    ways = {"direct": ("--transport", "direct")}
    for topology in ("single:2", "chain:2", "chain:4"):
        ways[f"xswitch {topology}"] = ("--transport", "xswitch", "--topology", topology, "--nodes", f"0,{last_node(topology)}")
    mpi = {"MPI direct": libraries[0],
           "MPI xswitch single:2": over(libraries[0], "--transport", "xswitch", "--topology", "single:2")}
    return ways_there(rounds, (16, 2048, 1048576), ways, mpi)


def hypercube(libraries, rounds):
    """One way over cards of the point design, none, one and two lines apart, beside an X-Switch and `direct`: ports and MPI."""
    ways = {"direct": ("--transport", "direct"),
            "xswitch": ("--transport", "xswitch", "--topology", "single:2", "--nodes", f"0,{last_node('single:2')}")}
    options = ("--transport", "pointdesign", "--topology", "gh:2x2x2")
    for what, node in (("a card", 1), ("one line", 2), ("two lines", 6)):
        ways[f"pointdesign, {what}"] = (*options, "--nodes", f"0,{node}")
    mpi = {"MPI xswitch": over(libraries[0], "--transport", "xswitch", "--topology", "single:2"),
           "MPI pointdesign": over(libraries[0], *options)}
    return ways_there(rounds, (16, 2048, 1048576), ways, mpi)


def pcie(libraries, rounds):
    """One way from board to board through the host, both modes, beside `direct`: ports and MPI."""
    ways, mpi = {"direct": ("--transport", "direct")}, {"MPI direct": libraries[0]}
    for mode in ("store", "cut-through"):
        options = ("--transport", f"pcie,mode={mode}", "--topology", "boards:2x1")
        ways[f"pcie {mode}"] = (*options, "--nodes", "0,1")
        mpi[f"MPI pcie {mode}"] = over(libraries[0], *options)
    return ways_there(rounds, (0, 16, 256, 4096, 16384, 65536, 262144, 1048576, 4194304), ways, mpi)


def one_latency(library, size):
    return table(library.run(2, "latency", size, size, pin=pinned()))[(str(size),)]


def last_node(topology):
    shown = json.loads(output_of(str(STAGE / "bin" / "ulfm_topo"), "show", topology, "--json"))
    return len(shown["nodes"]) - 1


# Fang and Lei 2017, section 4: seconds that the trapezoid rule takes on so many processes.
USETIME_OF_THE_PAPER = {8: 0.000653, 64: 0.043264, 128: 0.057931}


def trapezoid(_libraries, rounds):
    """The experiment of the paper over boards in a PC host, beside what is printed there."""
    program = STAGE / "share" / "ulfm" / "examples" / "bin" / "trapezoid"

    def run():
        found = {}
        for processes in USETIME_OF_THE_PAPER:
            text = output_of(str(STAGE / "bin" / "ulfmrun"), "--transport", "pcie", "--topology", "boards:8x16", "-n", str(processes),
                             str(program))
            line = re.search(r"usetime:([0-9.]+),processsize:(\d+),ourestimation=9\.000004291534424e\+00", text)
            if line is None or int(line.group(2)) != processes:
                raise Failure(f"trapezoid on {processes} processes printed: {text}")
            found[(processes,)] = float(line.group(1))
        return found

    rows = []
    for (processes,), values in measure({"ulfm": run}, rounds, False).items():
        line = row({"processes": processes}, values, "s")
        line["paper_s"] = USETIME_OF_THE_PAPER[processes]
        line["ratio_paper"] = float(f"{line['ulfm_s'] / line['paper_s']:.4g}")
        rows.append(line)
    return rows


# ---- NX/2 ------------------------------------------------------------------------------------------------------------

def nx2_pingpong(nodes, peer, sizes, *options):
    """One way between node 0 and a node, by csend and crecv: {(size,): us}."""
    source = TOP / "bench" / "nx2" / "pingpong.c"
    built = BUILT / "nx2" / "pingpong"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        built.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([str(STAGE / "bin" / "nxcc"), "-O2", str(source), "-o", str(built)], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(f"{source.name} does not compile with nxcc:\n{done.stderr}")
    command = [str(STAGE / "bin" / "ulfmrun"), *options, "-n", str(nodes), str(built), str(peer), *map(str, sizes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}:\n{(done.stdout + done.stderr)[-2000:]}")
    return table(done.stdout)


def nx2(libraries, rounds):
    """csend and crecv beside raw ports and MPI, all on `direct`."""
    sizes = (0, 100, 1024, 16384, 1048576)
    cores_of_pair = ",".join(map(str, pinned()))

    def ports():
        return {(str(size),): ulfm_perf("latency", "--bind", cores_of_pair, "--size", size)[0]["one_way_us"] for size in sizes}

    def mpi():
        return {(str(size),): one_latency(libraries[0], size) for size in sizes}

    bound = ("-bind-to", f"user:{','.join(map(str, pinned()))}")
    samples = measure({"ulfm": lambda: nx2_pingpong(2, 1, sizes, *bound), "ports": ports, "MPI": mpi}, rounds)
    rows = []
    for (size,), values in samples.items():
        line = row({"size": int(size)}, values, "us")
        line["ratio_ports"] = float(f"{line['ulfm_us'] / line['peers']['ports']:.4g}")
        rows.append(line)
    return rows


def ipsc2(_libraries, rounds):
    """csend and crecv over the hypercube at the machine's pace, one hop and five."""
    sizes = (0, 16, 64, 100, 101, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
    options = ("--transport", "dcm,pace=ipsc2", "--topology", "cube:5")
    ways = {1: 1, 5: 31}  # hops -> node
    samples = {hops: measure({"ulfm": lambda n=node: nx2_pingpong(32, n, sizes, *options)}, rounds, False)
               for hops, node in ways.items()}
    rows = []
    for hops, of_hops in samples.items():
        for (size,), values in of_hops.items():
            line = row({"hops": hops, "size": int(size)}, values, "us")
            line["MB_s"] = float(f"{int(size) / line['ulfm_us']:.4g}")
            rows.append(line)
    plot.curves(TOP / "docs" / "pictures" / "ipsc2.svg", "csend and crecv over dcm,pace=ipsc2: bandwidth against message length",
                "bytes", "MB/s",
                {f"{hops} hop{'s' if hops > 1 else ''}": [(r["size"], r["MB_s"]) for r in rows if r["hops"] == hops and r["size"]]
                 for hops in ways}, {"channel: 2.8 MB/s": 2.8})
    return rows


# ---- several hosts ---------------------------------------------------------------------------------------------------

RIVALS = ("openmpi", "mpich-ch4", "mpich-ofi", "nemesis")


def between_hosts(libraries, rounds):
    """MPI between two hosts, beside raw ports, TCP without a library (the better of two ways to wait is the floor), and
    libfabric's own ping-pong."""
    install(["libfabric-bin"])  # has fi_pingpong
    task = {"what": "pairs", "rounds": rounds, "tcp": several.tcp_program(), "providers": ["net", "tcp"],
            "libraries": [several.described(library, ("latency", "bandwidth", "idle")) for library in libraries]}
    samples = {key: values for key, values in several.beside(2, task).items() if "ulfm" in values}
    names = list(dict.fromkeys(name for values in samples.values() for name in values if name != "ulfm"))
    rows = []
    for key, values in samples.items():
        what, size = key.split()
        best = max if what in ("one", "both") else min
        line = row({"what": what, "size": int(size) if size.isdigit() else size}, values, "value", best is max)
        peers = line["peers"]
        for ratio, among in (("ratio_best", RIVALS), ("ratio_tcp", ("tcp", "tcp poll"))):
            found = [peers[name] for name in among if peers.get(name)]
            line[ratio] = rounded(line["ulfm_value"] / best(found)) if found else None
        line["peers"] = {name: peers.get(name) for name in names}
        rows.append(line)
    return rows


def between_hosts_target(row):
    if row["what"] == "idle":
        return Aim(1, key="ulfm_value") if row["size"] == "core_percent" else None
    return Aim(1.0) if row["what"] == "latency" else Aim(1.0, ">=")


def many_on_hosts(libraries, rounds):
    """Many ranks on four hosts."""
    task = {"what": "many", "hosts": 4, "ranks": [16, 64, 256], "rounds": rounds,
            "libraries": [several.described(library, ("empty", "connections")) for library in libraries]}
    rows = []
    for key, values in several.beside(4, task).items():
        ranks, what = key.split()
        if "ulfm" not in values:
            continue
        rows.append(row({"ranks": int(ranks), "what": what}, values, "value"))
    return rows


def crowded_hosts(libraries, rounds):
    """Collectives on two hosts, each of which has all cores of the machine. Nobody is bound."""
    calls = ["barrier", "bcast:64K", "allreduce:8", "allreduce:4K", "allreduce:64K", "allgather:1K", "alltoall:1K", "alltoall:16K"]
    task = {"what": "crowded", "hosts": 2, "ranks": [4, 8, 16], "rounds": rounds, "calls": calls,
            "libraries": [several.described(library, ("collectives",)) for library in libraries]}
    rows = []
    for key, values in several.beside(2, task).items():
        ranks, what, size = key.split()
        rows.append(row({"ranks": int(ranks), "what": what, "size": int(size)}, values, "us"))
    return rows


def calls_on_hosts(libraries, rounds):
    """Every call in turn, between two hosts."""
    task = {"what": "calls", "hosts": 2, "rounds": rounds, "groups": GROUPS_OF_CALLS,
            "libraries": [several.described(library, ("calls",)) for library in libraries]}
    return rows_of_calls({tuple(key.split()): values for key, values in several.beside(2, task).items() if "ulfm" in values})


# ---- models ----------------------------------------------------------------------------------------------------------

def models(_libraries, rounds):
    """Unit-hops and cycles a second of all forms of all models, without a program around them."""
    build = TOP / "build" / "release"
    done = subprocess.run(["cmake", "--build", str(build), "--target", "ulfm_bench_models"], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"bench/models does not build:\n{done.stdout[-2000:]}")
    program = next(build.glob("bench/ulfm_bench_models"))

    def run():
        text = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout
        return table(text, columns=4)

    samples = measure({"ulfm": run}, rounds, False)
    return [row({"model": model, "load": load, "kind": kind, "what": what}, values, "per_s", True)
            for (model, load, kind, what), values in samples.items()]


# ---- sim -------------------------------------------------------------------------------------------------------------

SIM_MODELS = [("xswitch", "mesh:4x4", 16, (0.05, 0.1, 0.15, 0.2)), ("xswitch", "mesh:8x8", 16, (0.05, 0.1, 0.15, 0.2)),
              ("xswitch", "mesh:8x8", 256, (0.05, 0.2)), ("dcm", "cube:6", 16, (0.01,)), ("pcie", "boards:8x1", 1, (0.2,)),
              ("pointdesign", "gh:2x4x4", 16, (0.2,)), ("ideal", "mesh:8x8", 16, (0.2,))]
SIM_SIZES = [("mesh:8x8", 64, 0.01), ("torus:8x8x4", 256, 0.01), ("torus:16x8x8", 1024, 0.01), ("torus:16x16x16", 4096, 0.01),
             ("torus:24x24x22", 12672, 0.01), ("hyperx:24x24x22", 12672, 0.002), ("fullmesh:128x100", 12800, 0.002),
             ("fattree:24x3", 13824, 0.002), ("dragonfly:8x16x8", 16512, 0.002)]
SIM_FLIT_LEVEL = 1.25e6  # flit-hops a second of a flit-level simulator on such a machine
# Messages over the busiest channel for each one that a node sends, without more nodes than channels of their own can feed:
# Dally and Towles 2004, chapters 3 and 8; rings are closed there.
SIM_KNOWN = [("torus:1x8", "uniform", 1), ("torus:1x8", "tornado", 3), ("torus:8x8", "uniform", 1), ("torus:8x8", "tornado", 3),
             ("mesh:8x8", "uniform", 64 * 8 / 4 / 63), ("mesh:8x8", "transpose", 7), ("mesh:8x8", "complement", 4),
             ("cube:6", "uniform", 1)]


def simulated(transport, topology, rate, *more):
    """What ulfm_sim says, and seconds that it took."""
    begin = time.monotonic()
    done = subprocess.run([str(STAGE / "bin/ulfm_sim"), "load", "-t", transport, "-T", topology, "-r", str(rate), "-q", "--timing",
                           "--json", *more], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure(f"ulfm_sim {transport} {topology} {rate}: exit code {done.returncode}")
    return json.loads(done.stdout), time.monotonic() - begin


def sim(_libraries, rounds):
    """Unit-hops a second of the simulator, by production, live and reference form; cost by size and shape; what a second core is
    worth; and the saturation of known cases beside the textbook's bound."""
    brief = ("--warmup", "500", "--measure", "2000", "--drain", "1")
    long = ("--warmup", "2000", "--measure", "60000", "--drain", "1")

    def speed(values, model, topology, length, rate):
        key = (model, topology, length, str(rate))
        for kind, window in (("production", long), ("live", long), ("reference", brief)):
            found, _ = simulated(model, topology, rate, "-j", "1", "-l", str(length), "--model", kind, *window)
            values[*key, kind, "unit_hops_per_s"] = found["rows"][0]["unit_hops_per_second"]
            values[*key, kind, "cycles_per_s"] = found["rows"][0]["cycles_per_second"]
        values[*key, "production", "over_reference"] = (values[*key, "production", "unit_hops_per_s"] /
                                                        values[*key, "reference", "unit_hops_per_s"])
        values[*key, "production", "over_flit_level"] = values[*key, "production", "unit_hops_per_s"] / SIM_FLIT_LEVEL

    def run():
        values = {}
        for model, topology, length, rates in SIM_MODELS:
            for rate in rates:
                speed(values, model, topology, length, rate)
        for topology, nodes, rate in SIM_SIZES:
            cycles = str(max(1000, 8_000_000 // nodes))
            found, _ = simulated("xswitch", topology, rate, "-j", "1", "--warmup", "200", "--measure", cycles, "--drain", "1")
            key = ("xswitch", topology, 16, str(rate), "production")
            values[*key, "ns_per_unit_hop"] = 1e9 / found["rows"][0]["unit_hops_per_second"]
            values[*key, "MiB"] = found["memory_MiB"]
        seconds = [simulated("xswitch", "mesh:8x8", "0.02:0.18:0.01", "-j", str(threads), "--measure", "200000")[1]
                   for threads in (1, 2)]
        values["xswitch", "mesh:8x8", 16, "0.02:0.18:0.01", "production", "two_cores_over_one"] = seconds[0] / seconds[1]
        for topology, pattern, load in SIM_KNOWN:
            found, _ = simulated("xswitch", topology, 0.02, "-p", pattern, "--saturation", "--measure", "8000", "--drain", "16000")
            series = found["series"][0]
            for what, value in (("textbook_bound", 1 / load), ("bound", series["bound"]), ("saturation", series["saturation"])):
                values["xswitch", topology, 16, pattern, "production", what] = value
        return values

    samples = measure({"ulfm": run}, rounds, False)
    return [row({"model": model, "topology": topology, "length": length, "rate": rate, "kind": kind, "what": what}, values, "value",
                what.endswith("_per_s"))
            for (model, topology, length, rate, kind, what), values in samples.items()]


BENCHES = {
    "latency": Bench("One way of a message between two ranks, half a ping-pong", 5,
                     of_pairs("latency", ["0", "64M"], sized, "us"), latency_target),
    "bandwidth": Bench("A stream of messages, 64 on their way, one way and both ways", 5,
                       of_pairs("bandwidth", ["1", "4M"], directed, "MB_s", True, columns=2), bandwidth_target),
    "flood": Bench("50,000 blocking sends of each sender to one receiver", 5, flood, lambda row: Aim(0.9)),
    "accumulate": Bench("MPI_Accumulate into a window of the host, each with its share of a flush", 7,
                        of_pairs("accumulate", [8, "4K", "64K", "4M"], lambda words: {"size": int(words[0])}, "us"),
                        lambda row: Aim(1.0)),
    "reductions": Bench("MPI_Reduce_local of 64 KB: operand taken", 5,
                        of_pairs("reductions", ["64K"], lambda words: {"operation": words[0], "type": words[1]}, "GB_s",
                                 more_is_better=True, columns=2), lambda row: Aim(1.0, ">=")),
    "threads": Bench("Round trips of 8 bytes with MPI_THREAD_MULTIPLE", 5,
                     threads, lambda row: Aim(1.0)),
    "rate": Bench("Messages of 8 bytes a second between two ranks", 5,
                  of_pairs("rate", [], lambda words: {"direction": words[0]}, "per_s", True), lambda row: Aim(1.5, ">=")),
    "calls": Bench("Every call, between two ranks of a host", 5, calls, lambda row: Aim(1.15), only_missed=True),
    "collectives": Bench("Collectives with a core for each rank", 5, collectives),
    "oversubscribed": Bench("Collectives with more ranks than cores", 3, oversubscribed,
                            lambda row: Aim(1.0 if row["busy"] else 0.25, key="ratio_openmpi")),
    "nonblocking": Bench("Nonblocking collectives and those of neighbours", 3, nonblocking,
                         lambda row: Aim(1.0, key="ratio_openmpi")),
    "startup": Bench("Start to end of an empty program", 3, startup,
                     lambda row: Aim(0.25, key="ratio_openmpi") if row["ranks"] == 128 else None),
    "setup": Bench("From a clone with nothing compiled to the demo", 1, setup,
                   lambda row: Aim(360, key="ulfm_s") if row["what"] == "first line" else None),
    "memory": Bench("Shared memory of a job after an alltoall", 1, memory,
                    lambda row: Aim(2 if row["ranks"] == 16 else 48, key="ulfm_MB")),
    "idle": Bench("A rank that waits five seconds for a message", 3, idle, idle_target),
    "apps": Bench("Programs: time that they print", 3, apps, lambda row: Aim(1.0)),
    "hosts": Bench("Between two hosts, which are namespaces with a veth cable", 5, between_hosts, between_hosts_target),
    "calls-on-hosts": Bench("Every call, between two hosts", 5, calls_on_hosts, lambda row: Aim(1.15), only_missed=True),
    "many": Bench("Many ranks on four hosts", 3, many_on_hosts),
    "crowded": Bench("Collectives on two hosts with more ranks than cores", 3, crowded_hosts, lambda row: Aim(1.0)),
    "ports": Bench("Raw ports, one way", 5, ports,
                   lambda row: Aim(1.2, key="ratio_floor") if row["size"] == 16 else None),
    "paths": Bench("Through user level and through the kernel, one way", 5, paths),
    "logp": Bench("Parameters of LogGP", 5, logp),
    "xswitch": Bench("Ports over X-Switches, one way", 5, xswitch),
    "hypercube": Bench("Ports and MPI over the point design beside an X-Switch, one way", 5, hypercube),
    "pcie": Bench("Ports and MPI from board to board through a PC host, one way", 5, pcie),
    "trapezoid": Bench("The trapezoid rule over boards in a PC host, as in the paper: usetime", 9, trapezoid),
    "nx2": Bench("NX/2: csend and crecv, one way", 5, nx2),
    "ipsc2": Bench("NX/2 at the pace of the iPSC/2, one way", 1, ipsc2),
    "models": Bench("The models' own speed", 3, models),
    "sim": Bench("The simulator's speed", 3, sim),
}

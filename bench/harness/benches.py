"""The benchmarks by name: what runs, what a row of it means, and what is aimed at."""

import json
import re
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable

from .libraries import Failure
from .machine import STAGE, TOP, cores, output_of
from .rounds import measure, pinned, row, ulfm_perf


@dataclass
class Bench:
    title: str
    rounds: int
    run: Callable  # (libraries, rounds) -> rows
    target: Callable = lambda row: None  # row -> (ratio_best that is aimed at, "<=" or ">="), or None


def table(text, columns=1):
    """Lines "key... value" as {keys: value}."""
    rows = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) == columns + 1:
            rows[tuple(words[:columns])] = float(words[columns])
    return rows


def of_pairs(program, arguments, key, unit, more_is_better=False):
    """A benchmark of two ranks, each on a core of its own."""

    def run(libraries, rounds):
        contestants = {
            library.name: lambda library=library: table(library.run(2, program, *arguments, pin=pinned()))
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
        return 0.95, "<="
    if size in (8, 16) or 64 <= size <= 4096:
        return 0.75, "<="
    if 16384 <= size <= 262144:
        return 0.85, "<="
    return (0.9, "<=") if size >= 2**20 else None


def bandwidth_target(row):
    return (1.25, ">=") if row["size"] <= 8192 else (1.0, ">=")


# ---- many ranks ------------------------------------------------------------------------------------------------------

EVERY_COLLECTIVE = ["barrier", "bcast:8", "bcast:64K", "reduce:8", "allreduce:8", "allreduce:64K", "allgather:64", "alltoall:64",
                    "alltoall:16K"]


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
    """8, 32 and 128 ranks on the cores there are; 8 once more with each core shared with a foreign process."""
    rows = []
    for ranks, busy in ((8, False), (32, False), (128, False), (8, True)):
        calls = ["barrier", "allreduce:8", "alltoall:64"]

        def run(library):
            with busy_cores(busy):
                return timed_collectives(library, ranks, calls)

        samples = measure({library.name: lambda library=library: run(library) for library in libraries}, rounds, False)
        rows += [row({"ranks": n, "busy": busy, "what": what, "size": size}, values, "us")
                 for (n, what, size), values in samples.items()]
    for line in rows:
        if "openmpi" in line["peers"]:
            line["ratio_openmpi"] = float(f"{line['ulfm_us'] / line['peers']['openmpi']:.4g}")
    return rows


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
    return [row({"ranks": ranks}, values, "s") for (ranks,), values in samples.items()]


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


def xswitch(_libraries, rounds):
    """One way over 1, 2 and 4 switches, beside `direct`; MPI by the same way in `mpi_us`."""
    ways = [("direct", None), ("xswitch", "single:2"), ("xswitch", "chain:2"), ("xswitch", "chain:4")]
    rows = []
    for size in (16, 2048, 1048576):
        contestants = {}
        for transport, topology in ways:
            name = f"{transport} {topology}" if topology else transport
            arguments = ["--transport", transport, "--size", size, "--bind", ",".join(map(str, pinned()))]
            if topology:
                arguments += ["--topology", topology, "--nodes", f"0,{last_node(topology)}"]
            contestants[name] = lambda a=tuple(arguments): {(): ulfm_perf("latency", *a)[0]["one_way_us"]}
        samples = measure(contestants, rounds)[()]
        for name in contestants:
            line = row({"size": size, "way": name}, {"ulfm": samples[name], "floor": samples["floor"]}, "us")
            line["MB_s"] = float(f"{size / line['ulfm_us']:.4g}")
            rows.append(line)
    return rows


def last_node(topology):
    shown = json.loads(output_of(str(STAGE / "bin" / "ulfm_topo"), "show", topology, "--json"))
    return len(shown["nodes"]) - 1


def models(_libraries, rounds):
    """Units and events a second of the models themselves, reference and production, without a program around them."""
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


BENCHES = {
    "latency": Bench("One way of a message between two ranks, half a ping-pong", 5,
                     of_pairs("latency", ["0", "64M"], sized, "us"), latency_target),
    "bandwidth": Bench("A stream of messages, 64 on their way", 5, of_pairs("bandwidth", ["1", "4M"], sized, "MB_s", True),
                       bandwidth_target),
    "rate": Bench("Messages of 8 bytes a second between two ranks", 5,
                  of_pairs("rate", [], lambda words: {"direction": words[0]}, "per_s", True), lambda row: (1.5, ">=")),
    "collectives": Bench("Collectives with a core for each rank", 5, collectives),
    "oversubscribed": Bench("Collectives with more ranks than cores", 3, oversubscribed),
    "startup": Bench("Start to end of an empty program", 3, startup, lambda row: (0.25, "<=") if row["ranks"] == 128 else None),
    "memory": Bench("Shared memory of a job after an alltoall", 1, memory),
    "idle": Bench("A rank that waits five seconds for a message", 3, idle),
    "apps": Bench("Programs: time that they print", 3, apps, lambda row: (1.0, "<=")),
    "ports": Bench("Raw ports, one way", 5, ports),
    "xswitch": Bench("Ports over X-Switches, one way", 5, xswitch),
    "models": Bench("The models' own speed", 3, models),
}

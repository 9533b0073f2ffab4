"""Interleaved measuring: floor, ulfm, peer 1, peer 2, ..., and again, so that all see the same machine."""

import json
import statistics
import subprocess
import sys
from collections import defaultdict

from .libraries import Failure
from .machine import STAGE, cores


def pinned():
    """The cores of a pair: the first two that we may use."""
    mine = cores()
    return mine[:2] if len(mine) >= 2 else mine


def ulfm_perf(test, *arguments):
    """Rows of the installed ulfm_perf."""
    command = [str(STAGE / "bin" / "ulfm_perf"), "--json", *map(str, arguments), test]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)["rows"]


def floor():
    """One way of a cache line between the two cores, in microseconds."""
    both = pinned()
    binding = ["--bind", ",".join(map(str, both))] if len(both) == 2 else []
    return ulfm_perf("floor", *binding)[0]["one_way_us"]


def say(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def measure(contestants, rounds, floor_too=True):
    """Runs every contestant once a round. `contestants`: name -> function that gives {key: value}. The result: key ->
    name -> values of all rounds, in the order in which keys came; "floor" is a name when asked for."""
    samples = defaultdict(lambda: defaultdict(list))
    floors = []
    for turn in range(rounds):
        if floor_too:
            floors.append(floor())
        for name, run in contestants.items():
            say(f"round {turn + 1} of {rounds}: {name}")
            for key, value in run().items():
                samples[key][name].append(value)
    say("")
    if floor_too:
        for of_key in samples.values():
            of_key["floor"] = floors
    return samples


def collected(name, parts, run):
    """What a library's runs of all parts find. Another library than ULFM may fail at a part."""
    found = {}
    for part in parts:
        try:
            found.update(run(part))
        except Failure as failure:
            if name == "ulfm":
                raise
            print(f"bench: {name}, {part}: {str(failure)[-300:]}", file=sys.stderr)
    return found


def spread(values):
    """Quartiles, or the extremes of a few."""
    if len(values) < 4:
        return [min(values), max(values)]
    first, _, third = statistics.quantiles(values, n=4)
    return [first, third]


def rounded(value):
    return float(f"{value:.4g}")


def row(keys, samples, unit, more_is_better=False):
    """A row of results: its keys, the medians of floor, ULFM and peers, their spread, and the ratios."""
    medians = {name: statistics.median(values) for name, values in samples.items()}
    result = dict(keys)
    if "floor" in medians:
        result["floor_us"] = rounded(medians["floor"])
    result[f"ulfm_{unit}"] = rounded(medians["ulfm"])
    peers = {name: value for name, value in medians.items() if name not in ("ulfm", "floor")}
    result["peers"] = {name: rounded(value) for name, value in peers.items()}
    result["spread"] = {name: [rounded(v) for v in spread(values)] for name, values in samples.items()}
    if peers:
        best = max(peers.values()) if more_is_better else min(peers.values())
        result["ratio_best"] = rounded(medians["ulfm"] / best) if best else None
    if "floor" in medians and unit == "us" and medians["floor"]:
        result["ratio_floor"] = rounded(medians["ulfm"] / medians["floor"])
    return result

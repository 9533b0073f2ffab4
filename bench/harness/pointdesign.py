"""The point design at its full size, and MPI's collectives on it in virtual time: the tables and pictures of docs/pointdesign.md."""

import os
import re
import subprocess

from . import plot
from .libraries import BUILT, Failure
from .machine import STAGE, TOP
from .papers import NONE, markdown, built, virtual

PAGE = TOP / "docs" / "pointdesign.md"
PICTURES = TOP / "docs" / "pictures"
POLICIES = ["farthest", "longest", "history", "through"]
FLITS = [2, 4, 8, 16]
RADIXES = [5, 10, 20, 40]
CALLS = ["bcast:8", "bcast:128", "bcast:1024", "bcast:65536", "reduce:8", "reduce:128", "reduce:1024", "reduce:4096", "reduce:65536",
         "allreduce:8", "allreduce:1024", "allreduce:65536", "allgather:8", "allgather:1024", "barrier:0"]
# The same software and cards everywhere, so that the networks are what differs.
ALIKE = "cycle_ps=10000,send_ns=500,receive_ns=500,send_byte_ps=0,receive_byte_ps=0,card_ns=0,card_byte_ps=0,local_ns=200,local_byte_ps=125"
MACHINES = {"pointdesign, multicast": ("pointdesign", "gh:2x4x8", "auto"), "pointdesign, rank to rank": ("pointdesign", "gh:2x4x8", "off"),
            "xswitch mesh": (f"xswitch,{ALIKE}", "mesh:8x16", "off"), "dcm cube": (f"dcm,{ALIKE}", "cube:7", "off")}


def simulate(*arguments):
    """The head and the rows of ulfm_bench_pointdesign, as words; a load's name has blanks and is the first of them."""
    command = [str(TOP / "build" / "release" / "bench" / "ulfm_bench_pointdesign"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    head, *rows = [re.split(r"  +", re.sub(r" (store|wormhole) ", r"  \1  ", line.strip())) for line in done.stdout.splitlines()]
    rows = [[row[0]] + " ".join(row[1:]).split() for row in rows]
    return [head[0]] + " ".join(head[1:]).replace("on lines", "on_lines").split(), rows


def column(table, name, load=None):
    head, rows = table
    return [float(row[head.index(name)]) for row in rows if load is None or row[0] == load]


def shown(table):
    head, rows = table
    return markdown([name.replace("_", " ") for name in head], rows)


def joined(tables):
    return tables[0][0], [row for table in tables for row in table[1]]


def broadcast():
    found = {(switching, flits): simulate("broadcast", switching, "longest", flits) for switching in ("store", "wormhole") for flits in FLITS}
    lines = {f"{load}, {switching}": [(flits, column(found[switching, flits], "cycles", load)[0]) for flits in FLITS]
             for switching in ("store", "wormhole") for load in ("broadcast", "unicasts in a tree")}
    plot.curves(PICTURES / "pointdesign-broadcast.svg", "One broadcast to 12,800 processors", "flits of a message", "cycles", lines, {})
    policies = [simulate("broadcast", switching, policy, 2) for switching in ("store", "wormhole") for policy in POLICIES]
    return (shown(joined(policies)) + "\nLonger messages, priority `longest`:\n\n" + shown(joined(list(found.values()))) +
            "\n![broadcast](pictures/pointdesign-broadcast.svg)\n")


def all_to_all():
    table = joined([simulate("all-to-all", switching, policy, 2) for switching in ("store", "wormhole") for policy in POLICIES])
    sizes = {(switching, policy, radix): simulate("all-to-all", switching, policy, 4, radix)
             for switching in ("store", "wormhole") for policy in POLICIES for radix in RADIXES[:-1]}
    for what, name in (("cycles", "until all is over"), ("mean", "of a broadcast on average")):
        lines = {f"{switching}, {policy}": [(radix**2 * 8, column(sizes[switching, policy, radix], what)[0]) for radix in RADIXES[:-1]]
                 for switching in ("store", "wormhole") for policy in POLICIES}
        plot.curves(PICTURES / f"pointdesign-all-{what}.svg", f"All-to-all broadcast, messages of 4 flits: cycles {name}", "processors", "cycles",
                    lines, {})
    return (shown(table) + "\nSmaller machines, messages of four flits:\n\n" +
            shown((["processors", *table[0]], [[radix**2 * 8, *row] for (_, _, radix), (_, rows) in sizes.items() for row in rows])) +
            "\n![cycles](pictures/pointdesign-all-cycles.svg)\n![mean](pictures/pointdesign-all-mean.svg)\n")


def traffic():
    tables = {(switching, policy): simulate("traffic", switching, policy, 2) for switching in ("store", "wormhole") for policy in POLICIES}
    return shown(joined(list(tables.values())))


def collectives():
    program, found = built(TOP / "bench" / "pointdesign" / "calls.c", "mpicc"), {}
    for name, (transport, topology, setting) in MACHINES.items():
        os.environ["ULFM_COLLECTIVES"] = setting
        lines = virtual(128, transport, topology, NONE, program, *CALLS)[0].splitlines()
        found[name] = {(what, int(size)): float(us) for what, size, us in (line.split() for line in lines if len(line.split()) == 3)}
    del os.environ["ULFM_COLLECTIVES"]
    for what in ("bcast", "reduce", "allreduce"):
        plot.curves(PICTURES / f"pointdesign-{what}.svg", f"MPI_{what.capitalize()}, 128 ranks, virtual time", "bytes", "us",
                    {name: [(size, us) for (call, size), us in line.items() if call == what and size <= 1024] for name, line in found.items()}, {})
    rows = [[f"MPI_{what.capitalize()}", size, *(f"{line[what, size]:.2f}" for line in found.values())] for what, size in next(iter(found.values()))]
    return (markdown(["call", "bytes", *found], rows) +
            "\n![bcast](pictures/pointdesign-bcast.svg)\n![reduce](pictures/pointdesign-reduce.svg)\n"
            "![allreduce](pictures/pointdesign-allreduce.svg)\n")


PARTS = {"broadcast": broadcast, "all-to-all": all_to_all, "traffic": traffic, "collectives": collectives}


def write(only=None):
    """Puts each part between its two marks; the words around them stay."""
    make = subprocess.run(["cmake", "--build", str(TOP / "build" / "release"), "--target", "ulfm_bench_pointdesign"], capture_output=True, text=True)
    if make.returncode != 0:
        raise Failure(f"ulfm_bench_pointdesign is not built:\n{make.stdout[-2000:]}")
    for name, part in PARTS.items():
        if only and name not in only:
            continue
        body = f"<!-- {name}: written by ./dev bench pointdesign -->\n\n{part()}\n<!-- end of {name} -->"
        text, count = re.subn(rf"<!-- {name}: .*?<!-- end of {name} -->", lambda _: body, PAGE.read_text(), flags=re.S)
        if count != 1:
            raise Failure(f"{PAGE} has {count} places for {name}, and needs one: <!-- {name}: --> ... <!-- end of {name} -->")
        PAGE.write_text(text)

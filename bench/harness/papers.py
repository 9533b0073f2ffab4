"""The experiments of the papers in virtual time, beside what their texts say: docs/papers.md."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

from . import plot
from .libraries import BUILT, Failure
from .machine import STAGE, TOP

PAGE = TOP / "docs" / "papers.md"
PICTURES = TOP / "docs" / "pictures"
NOT_GIVEN = "not in the text"
NONE = "virtual,compute=none"
# What a processor of the papers' time is beside this host's is in none of them.
PENTIUM = "virtual,compute=measured,cpu=50"
EXAMPLES = STAGE / "share" / "ulfm" / "examples" / "bin"
SIZES = [16, 64, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536]
# A kernel's share, ours: two mode switches and a driver at an end, and a copy of a byte.
KERNEL = ["send_ns=6000", "send_byte_ps=10000"], ["receive_ns=6000", "receive_byte_ps=10000"]
ETHERNET = "ideal,latency=20000,overhead=60000,gap=10000,byte=80,frame=1500"
RANKS = [1, 2, 4, 8]


def built(source, compiler, *options):
    program = BUILT / "papers" / Path(source).stem
    program.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([str(STAGE / "bin" / compiler), "-O2", str(source), "-o", str(program), *options],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{source} does not compile with {compiler}:\n{done.stderr}")
    return program


def virtual(ranks, transport, topology, time, program, *arguments):
    """What it printed, and where its time went."""
    with tempfile.NamedTemporaryFile(suffix=".json") as times:
        command = [str(STAGE / "bin" / "ulfmrun"), "--transport", transport, *(["--topology", topology] if topology else []),
                   "--time", time, "--times", times.name, "-n", str(ranks), str(program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise Failure(f"{' '.join(command)}:\n{(done.stdout + done.stderr)[-2000:]}")
        return done.stdout, json.loads(Path(times.name).read_text())


def two_columns(text):
    return {int(line.split()[0]): float(line.split()[1]) for line in text.splitlines() if len(line.split()) == 2}


def markdown(head, rows):
    return "\n".join([f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"] +
                     [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]) + "\n"


def messages_of_1999():
    """Zhou et al. 1999, figure 8."""
    program = built(TOP / "bench" / "papers" / "echo.c", "mpicc", f"-I{STAGE}/include", f"-L{STAGE}/lib", "-lulfm")
    ways = {"ulsr": [], "ulskrc": KERNEL[1], "ksrc2": KERNEL[0] + KERNEL[1]}
    found = {name: two_columns(virtual(2, ",".join(["xswitch", "preset=thgbnet", *options]), "th8", NONE, program, *SIZES)[0])
             for name, options in ways.items()}
    plot.curves(PICTURES / "papers-latency.svg", "Figure 8 of 1999: one way over the TH-Switch", "bytes", "us",
                {name: list(line.items()) for name, line in found.items()}, {"16 bytes, text: 6 us": 6})
    plot.curves(PICTURES / "papers-bandwidth.svg", "Figure 8 of 1999: bandwidth", "bytes", "MB/s",
                {name: [(size, size / us) for size, us in line.items()] for name, line in found.items()},
                {"2 KB, text: 40.26 MB/s": 40.26})
    rows = [[size, *(f"{found[name][size]:.2f}" for name in ways), f"{size / found['ulsr'][size]:.2f}",
             {16: "6 us", 2048: "40.26 MB/s"}.get(size, NOT_GIVEN)] for size in SIZES]
    ratio = found["ksrc2"][16] / found["ulsr"][16]
    return ("## Latency and bandwidth (Zhou et al. 1999, figure 8)\n\nPorts over one TH-Switch, preset thgbnet, which is fitted to the two "
            "figures of the text. ulskrc and ksrc2 have a kernel at one end and at both; what it takes is ours.\n\n" +
            markdown(["bytes", "ulsr us", "ulskrc us", "ksrc2 us", "ulsr MB/s", "text, ulsr"], rows) +
            f"\nksrc2 takes {ratio:.2f} times as long as ulsr for 16 bytes; the text: more than twice.\n\n"
            "![latency](pictures/papers-latency.svg)\n![bandwidth](pictures/papers-bandwidth.svg)\n")


def programs_of_1999():
    """Zhou et al. 1999, figures 9 and 10."""
    parts = ["## pi, mm and lu (Zhou et al. 1999, figures 9 and 10)\n\nSeconds of virtual time; speed-up beside one rank. The text has no "
             "figures, and does not say how large the problems were. Computing is measured and counts fifty times (ours). Ethernet is an "
             "ideal network of 100 Mbit/s without contention, with 60 us of a kernel at each end (ours).\n"]
    for name, size in (("pi", 1000000), ("mm", 120), ("lu", 120)):
        rows, lines = [], {"TH-Switch": [], "Ethernet": []}
        for ranks in RANKS:
            took = {way: virtual(ranks, transport, topology, PENTIUM, EXAMPLES / name, size)[1]["virtual_s"]
                    for way, transport, topology in (("TH-Switch", "xswitch,preset=thgbnet", "th8"), ("Ethernet", ETHERNET, None))}
            for way, seconds in took.items():
                lines[way].append((ranks, seconds))
            rows.append([ranks, *(f"{took[way]:.4f}" for way in took), *(f"{lines[way][0][1] / took[way]:.2f}" for way in took), NOT_GIVEN])
        plot.curves(PICTURES / f"papers-{name}.svg", f"{name} {size}: speed-up", "ranks", "speed-up",
                    {way: [(ranks, line[0][1] / seconds) for ranks, seconds in line] for way, line in lines.items()}, {})
        parts.append(f"### {name} {size}\n\n" + markdown(["ranks", "TH-Switch s", "Ethernet s", "speed-up", "speed-up, Ethernet", "paper"],
                                                         rows) + f"\n![{name}](pictures/papers-{name}.svg)\n")
    return "\n".join(parts)


def echo_of_ipsc():
    """Nugent 1988, the echo program; Pierce 1988, section 3."""
    program = built(TOP / "bench" / "nx2" / "pingpong.c", "nxcc")
    sizes = [0, 100, 101, 1024, 4096, 16384, 65536, 262144]
    machines = {"iPSC/2": "dcm,preset=ipsc2", "iPSC/1": "dcm,preset=ipsc1,frame=1024"}
    found = {(machine, hops): two_columns(virtual(32, transport, "cube:5", NONE, program, peer, *sizes)[0])
             for machine, transport in machines.items() for hops, peer in ((1, 1), (5, 31))}
    plot.curves(PICTURES / "papers-echo.svg", "echo of Nugent 1988: bandwidth", "bytes", "MB/s",
                {f"{machine}, {hops} hops": [(size, size / us) for size, us in line.items() if size]
                 for (machine, hops), line in found.items()}, {"channel of the iPSC/2, text: 2.8 MB/s": 2.8})
    said = {0: "about 350 us (Pierce)", 262144: "above 2.7 MB/s when very long (Pierce)"}
    rows = [[size, *(f"{line[size]:.1f}" for line in found.values()), f"{size / found['iPSC/2', 5][size]:.3f}", said.get(size, NOT_GIVEN)]
            for size in sizes]
    ratio = found["iPSC/1", 1][0] / found["iPSC/2", 1][0]
    return ("## echo on the iPSC/2 and the iPSC/1 (Nugent 1988; Pierce 1988)\n\ncsend and crecv, one way, us. What the iPSC/1 took is in the "
            "text only as a ratio, to which its preset is fitted.\n\n" +
            markdown(["bytes", *(f"{machine}, {hops}" for machine, hops in found), "MB/s, 5 hops", "text, iPSC/2"], rows) +
            f"\nA null message over one channel takes {ratio:.1f} times as long on the iPSC/1; the text: the iPSC/2 has less than one-fifth.\n\n"
            "![echo](pictures/papers-echo.svg)\n")


def fft_of_ipsc():
    """Close 1988, figure 1."""
    source, rows = (TOP / "examples" / "nx2" / "fft2d.f").read_text(), []
    for order in (64, 256, 1024):
        changed = BUILT / "papers" / f"fft2d_{order}.f"
        changed.parent.mkdir(parents=True, exist_ok=True)
        changed.write_text(source.replace("PARAMETER (N = 64)", f"PARAMETER (N = {order})"))
        program = built(changed, "nxf77", "-mcmodel=large")
        took = [virtual(16, transport, "cube:4", NONE, program)[1]["virtual_s"]
                for transport in ("dcm,preset=ipsc2", "dcm,preset=ipsc1,frame=1024")]
        rows.append([order, *(f"{seconds:.3f}" for seconds in took), f"{took[1] / took[0]:.1f}",
                     "6, computing included" if order == 1024 else NOT_GIVEN])
    return ("## 2-D FFT (Arlauskas 1988, figure 1)\n\nTransposes of examples/nx2/fft2d.f on 16 nodes, s; computing takes no time here, because the "
            "vector boards' is not in the text.\n\n" + markdown(["order", "iPSC/2 s", "iPSC/1 s", "ratio", "text"], rows))


def trapezoid_of_2017(usetime):
    """Fang and Lei 2017, section 4."""
    rows = []
    for ranks, paper in usetime.items():
        text, times = virtual(ranks, "pcie", "boards:8x16", NONE, EXAMPLES / "trapezoid")
        line = re.search(r"usetime:([0-9.]+),.*ourestimation=([0-9.e+]+)", text)
        if line is None or line.group(2) != "9.000004291534424e+00":
            raise Failure(f"trapezoid on {ranks} processes printed: {text}")
        rows.append([ranks, line.group(1), f"{times['virtual_s']:.6f}", paper])
    return ("## Trapezoid (Fang and Lei 2017, section 4)\n\nOver boards:8x16, preset gen2 of four lanes (ours: the text has no rates). The result is "
            "the paper's to the last digit. The paper's processes shared the cores of a PC; here each has a processor, which is why 64 and 128 "
            "take less.\n\n" + markdown(["ranks", "usetime s", "whole job s", "usetime in the paper, s"], rows))


def fairness():
    """The X-Switch paper, section 2."""
    program = built(TOP / "bench" / "papers" / "contend.c", "mpicc")
    ends, _ = virtual(4, "xswitch,frame=256", "single:5", NONE, program, 100, 4000)
    rows = [[rank, f"{seconds * 1e6:.1f}"] for rank, seconds in two_columns(ends).items()]
    waits = []
    for unread in ("64K", "1M"):
        links = virtual(4, f"xswitch,frame=256,unread={unread}", "single:5", NONE, program, 100, 4000, 500)[1]["links"]
        waits.append([f"{link['wait_s'] * 1e6:.0f}" for link in links])
    stops = [[link["from"], link["to"], f"{link['busy_s'] * 1e6:.0f}", *waited] for link, *waited in zip(links, *waits)]
    return ("## A0 B0 C0 (THNPC-II, section 2)\n\nThree nodes send 100 messages of 4,000 bytes to a fourth, in frames of 256. When the last one of "
            "each was there:\n\n" + markdown(["sender", "us"], rows) +
            "\nThe text says that small frames of several inputs take turns at an output; it has no figures. With 500 us of reading for each "
            "message the receiver soon leaves 64 KB unread; its card takes nothing more, and ID-STOP comes from there. A card that takes 1 MB unread "
            "(`unread=1M`) leaves the ID-STOP of full outputs. Links then:\n\n" +
            markdown(["from", "to", "busy us", "waited us", "waited us, unread=1M"], stops))


def write(usetime):
    parts = ["# The papers' experiments\n\n<!-- Written by `./dev bench papers`; do not edit. -->\n\n"
             "Each in virtual time (`ulfm-time(7)`), with the presets of its machine, beside what the paper's text says. Curves that are only "
             "in a figure are not given; nothing is read off a drawing. Without computing the figures repeat to the bit on any host.\n"]
    parts += [messages_of_1999(), programs_of_1999(), echo_of_ipsc(), fft_of_ipsc(), trapezoid_of_2017(usetime), fairness()]
    PAGE.write_text("\n".join(part.rstrip("\n") + "\n" for part in parts))

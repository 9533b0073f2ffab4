"""What was measured on: the head of every result."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
STAGE = TOP / "build" / "stage"


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def cores():
    return sorted(os.sched_getaffinity(0))


def is_busy(head):
    """The load average was above one for every two cores: something else ran beside the measurement."""
    return head["load_before"] > head["cores"] / 2


def describe():
    """The head: machine, system, what it was doing, and the version of the source."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor(),
        "cores": len(cores()),
        "memory_GiB": round(memory, 1),
        "kernel": platform.release(),
        "load_before": round(os.getloadavg()[0], 2),
        "source": output_of("git", "-C", str(TOP), "describe", "--always", "--dirty"),
    }

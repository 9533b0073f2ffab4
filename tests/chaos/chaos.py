#!/usr/bin/env python3
"""Random jobs under random trouble, for as long as is asked: a job is right, or says why it is not; it never hangs and
leaves no process behind.

Each job is drawn from a seed of its own, which is printed before it runs; `--seed N --jobs 1` runs that job again. When a
job breaks the rules, what it had is taken away piece by piece as long as it still breaks them, and the shortest command
is printed.
"""
import argparse
import os
import random
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 180  # seconds for a job that takes one; the machine may be loaded
EXPLAINED = re.compile(r"ulfm|BAD TERMINATION|Fatal error|Abort|ulfmrun|cannot fork|Cannot allocate|memory", re.I)


def draw_job(seed):
    """What a job is: a dictionary of which every entry can be left away when a failure is made smaller."""
    r = random.Random(seed)
    job = {"ranks": r.choice([2, 2, 3, 4, 5, 8]), "rounds": r.choice([5, 20, 60]), "program": r.randrange(10**6)}
    transport = r.choice(["direct", "direct", "direct", "xswitch", "dcm", "pcie", "pointdesign", "ideal", "ofi", "tcp"])
    if transport != "direct":
        job["transport"] = transport
        topologies = {"xswitch": ["mesh:2x2", "tree:2", "single:4"], "dcm": ["cube:3"], "pcie": ["boards:4x4"],
                      "pointdesign": ["gh:2x2x2"]}
        if transport in topologies:
            job["topology"] = r.choice(topologies[transport])
    if r.random() < 0.2:
        job["faults"] = r.choice(["drop=1e-2", "drop=1e-3,duplicate=1e-2", "corrupt=1e-2", "reorder=2e-2"])
    if r.random() < 0.3:
        job["setting"] = r.choice(["ULFM_LANES=0", "ULFM_EXCHANGE=1", "ULFM_DEPTH=4", "ULFM_LANE_AFTER=0", "ULFM_EAGER=1K",
                                   "ULFM_LANE_BYTES=8K", "ULFM_CONTROL=unix", "ULFM_CONTROL=tcp", "ULFM_PARK_LIMIT=1"])
    if r.random() < 0.15:
        job["memory"] = r.choice([300_000, 360_000, 450_000, 700_000])  # KB of address space
    if r.random() < 0.15:
        job["descriptors"] = r.choice([16, 24, 40, 64])
    if r.random() < 0.35:
        job["trouble"] = (r.choice(["kill", "kill", "stop"]), r.randrange(8), r.random() * 0.5)
    if r.random() < 0.2:
        job["load"] = r.choice([1, 2, 4])
    return job


def command(job, tree):
    run = [os.path.join(tree, "bin", "ulfmrun")]
    for option in ("transport", "topology"):
        if option in job:
            run += ["--" + option, job[option]]
    if "faults" in job:
        run += ["--fault", job["faults"]]
    return run + ["-n", str(job["ranks"]), job["binary"], str(job["program"]), str(job["rounds"])]


def shown(job, tree):
    limits = (f"ulimit -v {job['memory']}; " if "memory" in job else "") + \
        (f"ulimit -n {job['descriptors']}; " if "descriptors" in job else "")
    text = limits + (job.get("setting", "") + " " + shlex.join(command(job, tree))).strip()
    if "trouble" in job:
        what, rank, after = job["trouble"]
        text += f"   # and {what} rank {rank % job['ranks']} after {after:.2f} s"
    return text + (f"   # beside {job['load']} processes that compute" if "load" in job else "")


def processes_of(mark):
    """Those that carry our mark in their environment: the job, and whatever it has left behind."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as f:
                environment = f.read()
            with open(f"/proc/{name}/stat") as f:
                state = f.read().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if mark.encode() in environment and state != "Z":
            rank = re.search(rb"(?:^|\0)PMI_RANK=(\d+)", environment)
            found.append((int(name), int(rank.group(1)) if rank else None))
    return found


def make_trouble(job, mark):
    what, wanted, after = job["trouble"]
    time.sleep(after)
    for pid, rank in processes_of(mark):
        if rank != wanted % job["ranks"]:
            continue
        try:
            os.kill(pid, signal.SIGKILL if what == "kill" else signal.SIGSTOP)
            if what == "stop":
                time.sleep(0.7)
                os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue
        return what == "kill"
    return False


def run(job, tree):
    """None when the job kept the rules, else which one it broke."""
    mark = f"ULFM_CHAOS_MARK_{os.getpid()}_{time.monotonic_ns()}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ULFM_", "PMI_"))}
    environment["CHAOS_MARK"] = mark
    if "setting" in job:
        environment.update([job["setting"].split("=", 1)])

    def limit():
        if "memory" in job:
            resource.setrlimit(resource.RLIMIT_AS, (job["memory"] * 1024,) * 2)
        if "descriptors" in job:
            resource.setrlimit(resource.RLIMIT_NOFILE, (job["descriptors"],) * 2)

    load = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(job.get("load", 0))]
    try:
        with tempfile.TemporaryFile() as output:
            started = subprocess.Popen(command(job, tree), stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                       env=environment, preexec_fn=limit)
            killed = "trouble" in job and make_trouble(job, mark)
            try:
                status = started.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                status = None
            output.seek(0)
            text = output.read().decode(errors="replace")
    finally:
        for one in load:
            one.kill()
            one.wait()
    end = time.monotonic() + 20  # what ends with the job may take a moment on a loaded machine
    while status is not None and processes_of(mark) and time.monotonic() < end:
        time.sleep(0.05)
    left = processes_of(mark)
    for pid, _ in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    if status is None:
        started.wait()
        return f"it hung\n{text[-3000:]}"
    if left:
        return f"{len(left)} processes were left behind\n{text[-3000:]}"
    if "WRONG" in text:
        return f"data were wrong\n{text[-3000:]}"
    if status == 0:
        return None if "storm: right" in text else f"it ended with 0 and no result\n{text[-3000:]}"
    if status < 0 or "Segmentation" in text or "SIGBUS" in text or "(signal 7)" in text or "(signal 11)" in text:
        return f"it crashed (status {status})\n{text[-3000:]}"
    if not killed and not {"memory", "descriptors"} & job.keys():
        return f"it failed without a reason (status {status})\n{text[-3000:]}"
    return None if EXPLAINED.search(text) else f"it failed and did not say why (status {status})\n{text[-3000:]}"


def smaller(job, tree):
    """The job with as little as still breaks the rules."""
    for entry in ("load", "trouble", "descriptors", "memory", "setting", "faults", "topology", "transport"):
        if entry not in job:
            continue
        less = {k: v for k, v in job.items() if k != entry and not (entry == "transport" and k == "topology")}
        if "topology" in less and "transport" not in less:
            continue
        if run(less, tree) is not None:
            job = less
    return job


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--jobs", type=int, default=10**9, help="end after so many")
    parser.add_argument("--seed", type=int, default=None, help="of the first job; each has the next one")
    parser.add_argument("--stage", default=os.environ.get("ULFM_STAGE"), help="the folder where ULFM is installed")
    arguments = parser.parse_args()
    if not arguments.stage or not os.access(os.path.join(arguments.stage, "bin", "ulfmrun"), os.X_OK):
        sys.exit("chaos: no ulfmrun in the stage; ./dev setup makes it")
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(10**9)
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory() as work:
        binary = os.path.join(work, "storm")
        subprocess.run([os.path.join(arguments.stage, "bin", "mpicc"), "-O1", os.path.join(here, "storm.c"), "-o", binary],
                       check=True)
        end = time.monotonic() + arguments.minutes * 60
        done = 0
        while done < arguments.jobs and time.monotonic() < end:
            job = dict(draw_job(seed + done), binary=binary)
            print(f"seed {seed + done}: {shown(job, arguments.stage)}", flush=True)
            broken = run(job, arguments.stage)
            if broken:
                print(f"chaos: seed {seed + done} broke a rule: {broken}")
                print(f"chaos: the least that does: {shown(smaller(job, arguments.stage), arguments.stage)}")
                print(f"chaos: again with: tests/chaos/chaos.py --seed {seed + done} --jobs 1")
                sys.exit(1)
            done += 1
    print(f"chaos: {done} jobs from seed {seed} on, none broke a rule")


if __name__ == "__main__":
    main()

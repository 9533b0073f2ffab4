"""What the campaigns of kills share: rounds that are drawn from seeds, the log from which a campaign goes on, and the end
of a round's job."""
import argparse
import collections
import json
import os
import signal
import subprocess
import sys
import time

import chaos


def parser(description, name, kills):
    """The options of every campaign; `only` becomes a dictionary."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=kills, help=f"rounds in all ({kills})")
    options.add_argument("--first", type=int, default=1, help="seed of the first round (1)")
    options.add_argument("--only", default={}, type=fixed, help="fix entries of the rounds: who=rank,place=barrier,transport=direct")
    options.add_argument("--log", default=f"{name}.log", help=f"where rounds are noted ({name}.log); a run goes on from it")
    options.add_argument("--patience", type=float, default=60, help="seconds for a job before it counts as hung (60)")
    options.add_argument("--stage", default=os.environ.get("ULFM_STAGE"), help="the folder where ULFM is installed")
    return options


def fixed(text):
    """who=node,nodes=3: numbers are numbers."""
    only = dict(entry.split("=", 1) for entry in text.split(",") if entry)
    return {key: int(value) if key in ("ranks", "hosts", "nodes") else value for key, value in only.items()}


def check_stage(name, stage, program):
    """Ends with a sentence without that program in the stage."""
    if not stage or not os.access(os.path.join(stage, "bin", program), os.X_OK):
        sys.exit(f"{name}: no {program} in the stage; ./dev setup makes it")


def wait_for_file(file, started, seconds):
    """Whether the job has made the file, within that time and before its end."""
    end = time.monotonic() + seconds
    while not os.path.exists(file) and started.poll() is None and time.monotonic() < end:
        time.sleep(0.0005)
    return os.path.exists(file)


def name_of(pid):
    """The program in a process; empty when there is none."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def files_in(*folders):
    """What is in folders where a job may leave files; of /dev/shm only MPICH's and ours."""
    return {os.path.join(folder, name) for folder in folders for name in os.listdir(folder)
            if folder != "/dev/shm" or "mpich" in name or "ulfm" in name}


def wait_until_gone(before, *folders):
    """The files that somebody has left there since `before`; another job's are gone in a moment."""
    end = time.monotonic() + 20
    while files_in(*folders) - before and time.monotonic() < end:
        time.sleep(0.05)
    return sorted(files_in(*folders) - before)


def finish(started, mark, patience):
    """Status, or None when it hung, and the processes that were left behind; they are ended."""
    status = None
    try:
        status = started.wait(patience)
    except subprocess.TimeoutExpired:
        pass
    end = time.monotonic() + 20
    while status is not None and chaos.processes_of(mark) and time.monotonic() < end:
        time.sleep(0.02)
    left = [(pid, name_of(pid)) for pid, _ in chaos.processes_of(mark)]
    for pid, _ in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    started.wait()
    return status, left


def verdict(broken, left, files, output):
    """None, or the rule that was broken, with the end of what the job printed."""
    if broken is None and left:
        broken = f"{len(left)} processes were left behind: {left}"
    if broken is None and files:
        broken = f"{len(files)} files were left behind: {files}"
    return f"{broken}\n{output[-2000:]}" if broken else None


def play(name, log, rounds, run, until=float("inf")):
    """Runs the rounds that the log does not have, pairs of a seed and a round, and notes each. Value: the exit status.

    `run(round)` returns whether somebody was killed, and None or the rule that was broken. No round begins after the moment
    `until` of time.monotonic().
    """
    done = {}
    if os.path.exists(log):
        with open(log) as f:
            done = {entry["seed"]: entry for entry in map(json.loads, f)}
    with open(log, "a") as notes:
        for seed, one in rounds:
            if seed in done or time.monotonic() > until:
                continue
            killed, broken = run(one)
            done[seed] = {"seed": seed, **one, "killed": killed, "broken": broken}
            print(json.dumps(done[seed]), file=notes, flush=True)
            if broken:
                print(f"{name}: seed {seed} {one}: {broken}", flush=True)
    mine = [done[seed] for seed, _ in rounds if seed in done]
    bad = [entry["seed"] for entry in mine if entry["broken"]]
    count = collections.Counter(entry["who"] for entry in mine if entry["killed"])
    print(f"{name}: {len(mine)} of {len(rounds)} rounds, " + ", ".join(f"{n} {who}" for who, n in sorted(count.items())) +
          f" killed; {len(bad)} broke a rule" + (f": seeds {bad}" if bad else ""))
    return int(bool(bad))

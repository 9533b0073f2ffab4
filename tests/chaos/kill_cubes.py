#!/usr/bin/env python3
"""Kills the host program of a cube (NX/2), a node, the process that moves the interconnect, or ulfmrun, at a place that
is known, again and again: the job ends in time, leaves no process behind, and a node's death is named.

Each round is drawn from a seed of its own and is a line in the log; the same command goes on where it stopped.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import chaos  # noqa: E402

PLACES = ["load", "messages", "large", "global", "wait"]
TOPOLOGIES = {"direct": None, "xswitch": "mesh:2x2", "dcm": "cube:3"}


def draw(seed, only):
    """A round: what is killed, where, over what."""
    r = random.Random(seed)
    one = {"nodes": r.choice([1, 2, 3, 4]), "place": r.choice(PLACES), "transport": r.choice(sorted(TOPOLOGIES)),
           "who": r.choice(["host", "host", "node", "node", "engine", "ulfmrun"]),
           "signal": r.choice(["KILL", "KILL", "SEGV"]),
           "delay": r.choice([0, r.random() * 0.005, r.random() * 0.1])}
    one.update(only)
    one["victim"] = str(r.randrange(one["nodes"])) if one["who"] == "node" else "host"
    if one["who"] == "engine" and one["transport"] == "direct":
        one["transport"] = r.choice(["xswitch", "dcm"])
    if one["who"] in ("engine", "ulfmrun"):
        one["signal"] = "KILL"
    return one


def command(one, tree, binary, file):
    run = [os.path.join(tree, "bin", "nxhost"), "-n", str(one["nodes"]), "--transport", one["transport"]]
    if TOPOLOGIES[one["transport"]]:
        run += ["--topology", TOPOLOGIES[one["transport"]]]
    if one["who"] == "ulfmrun":  # stays, as the parent of the host program, where it has statistics to print
        run += ["--stats"]
    return run + [binary, one["place"], one["victim"], file]


def find(one, mark, started, file):
    """The process to kill, or None."""
    if one["who"] in ("host", "node"):
        with open(file) as f:
            return int(f.read())
    if one["who"] == "ulfmrun":
        return started.pid
    for pid, _ in chaos.processes_of(mark):
        try:
            with open(f"/proc/{pid}/comm") as f:
                if f.read().strip() in ("ulfm-engine", "ulfm_hostd", "ulfm-host"):
                    return pid
        except OSError:
            pass
    return None


def judge(one, status, text, killed):
    """None, or the rule that was broken."""
    if status is None:
        return "it hung"
    if not killed:
        return f"nobody was killed, and it ended with status {status}"
    number = int(getattr(signal, "SIG" + one["signal"]))
    named = f"nx: node {one['victim']} ended with status {128 + number}; the job ends" in text
    if one["who"] == "node" and (status != 1 or not named):
        return f"its message does not name the node and its end (status {status})"
    if one["who"] in ("host", "ulfmrun") and status not in (-number, 128 + number):
        return f"it ended with status {status}"
    return None


def finish(started, mark, patience):
    """Status or None, and the processes that were left behind; they are ended."""
    status = None
    try:
        status = started.wait(patience)
    except subprocess.TimeoutExpired:
        pass
    end = time.monotonic() + 20
    while status is not None and chaos.processes_of(mark) and time.monotonic() < end:
        time.sleep(0.02)
    left = chaos.processes_of(mark)
    names = []
    for pid, _ in left:
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                names.append(f"{pid} " + f.read().replace("\0", " "))
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    started.wait()
    return status, names


def run(one, tree, binary, patience):
    mark = f"ULFM_CUBES_MARK_{os.getpid()}_{time.monotonic_ns()}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ULFM_", "PMI_", "CUBE_"))}
    environment["CHAOS_MARK"] = mark
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        file = os.path.join(folder, "there")
        started = subprocess.Popen(command(one, tree, binary, file), stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, env=environment)
        end, killed = time.monotonic() + patience, False
        while not os.path.exists(file) and started.poll() is None and time.monotonic() < end:
            time.sleep(0.0005)
        if os.path.exists(file):
            time.sleep(one["delay"])
            pid = find(one, mark, started, file)
            # The engine names itself a moment later.
            while pid is None and started.poll() is None and time.monotonic() < end:
                pid = find(one, mark, started, file)
            if pid is not None:
                os.kill(pid, getattr(signal, "SIG" + one["signal"]))
                killed = True
            if one["who"] == "engine" and killed:
                time.sleep(0.5)  # the job goes on, or says what is missing, and is ended
                started.kill()
        status, left = finish(started, mark, patience)
        output.seek(0)
        text = output.read().decode(errors="replace")
    broken = judge(one, status, text, killed)
    if broken is None and left:
        broken = f"{len(left)} processes were left behind: {left}"
    return killed, (broken + "\n" + text[-2000:]) if broken else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=180, help="rounds in all (180)")
    parser.add_argument("--first", type=int, default=1, help="seed of the first round (1)")
    parser.add_argument("--only", default="", help="fix entries of the rounds: who=node,place=wait,transport=dcm")
    parser.add_argument("--log", default="kill_cubes.log", help="where rounds are noted; a run goes on from it")
    parser.add_argument("--patience", type=float, default=60, help="seconds for a job before it counts as hung (60)")
    parser.add_argument("--stage", default=os.environ.get("ULFM_STAGE"), help="the folder where ULFM is installed")
    arguments = parser.parse_args()
    if not arguments.stage or not os.access(os.path.join(arguments.stage, "bin", "nxhost"), os.X_OK):
        sys.exit("kill_cubes: no nxhost in the stage; ./dev setup makes it")
    only = dict(entry.split("=", 1) for entry in arguments.only.split(",") if entry)
    if "nodes" in only:
        only["nodes"] = int(only["nodes"])
    done = {}
    if os.path.exists(arguments.log):
        with open(arguments.log) as f:
            done = {entry["seed"]: entry for entry in map(json.loads, f)}
    with tempfile.TemporaryDirectory() as work, open(arguments.log, "a") as log:
        binary = os.path.join(work, "cube_phases")
        subprocess.run([os.path.join(arguments.stage, "bin", "nxcc"), "-std=gnu11", "-O1",
                        os.path.join(HERE, "cube_phases.c"), "-o", binary], check=True)
        seeds = range(arguments.first, arguments.first + arguments.kills)
        for seed in seeds:
            if seed in done:
                continue
            one = draw(seed, only)
            killed, broken = run(one, arguments.stage, binary, arguments.patience)
            done[seed] = {"seed": seed, **one, "killed": killed, "broken": broken}
            print(json.dumps(done[seed]), file=log, flush=True)
            if broken:
                print(f"kill_cubes: seed {seed} {one}: {broken}", flush=True)
    mine = [done[seed] for seed in seeds]
    bad = [entry["seed"] for entry in mine if entry["broken"]]
    count = collections.Counter(entry["who"] for entry in mine if entry["killed"])
    print(f"kill_cubes: {len(mine)} rounds, " + ", ".join(f"{n} {who}" for who, n in sorted(count.items())) +
          f" killed; {len(bad)} broke a rule" + (f": seeds {bad}" if bad else ""))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()

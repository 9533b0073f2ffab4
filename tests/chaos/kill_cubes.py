#!/usr/bin/env python3
"""Kills the host program of a cube (NX/2), a node, the process that moves the interconnect, or ulfmrun, at a place that
is known, again and again: the job ends in time, leaves no process and no file behind, and a node's death is named.

Each round is drawn from a seed of its own and is a line in the log; the same command goes on where it stopped.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import campaign  # noqa: E402
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
        if campaign.name_of(pid) in ("ulfm-engine", "ulfm_hostd", "ulfm-host"):
            return pid
    return None


def check_outcome(one, status, text, killed):
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


def run(one, tree, binary, patience):
    mark = f"ULFM_CUBES_MARK_{os.getpid()}_{time.monotonic_ns()}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ULFM_", "PMI_", "CUBE_"))}
    environment["CHAOS_MARK"] = mark
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        file, made = os.path.join(folder, "there"), os.path.join(folder, "made")
        os.mkdir(made)
        environment["TMPDIR"] = made
        before = campaign.files_in("/dev/shm")
        started = subprocess.Popen(command(one, tree, binary, file), stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, env=environment)
        end, killed = time.monotonic() + patience, False
        if campaign.wait_for_file(file, started, patience):
            time.sleep(one["delay"])
            pid = find(one, mark, started, file)
            # The engine names itself a moment later.
            while pid is None and started.poll() is None and time.monotonic() < end:
                pid = find(one, mark, started, file)
            try:
                if pid is not None:
                    os.kill(pid, getattr(signal, "SIG" + one["signal"]))
                    killed = True
            except ProcessLookupError:
                pass  # it has ended since it was found
            if one["who"] == "engine" and killed:
                time.sleep(0.5)  # the job goes on, or says what is missing, and is ended
                started.kill()
        status, left = campaign.finish(started, mark, patience)
        files = campaign.wait_until_gone(before, made, "/dev/shm")
        output.seek(0)
        text = output.read().decode(errors="replace")
    return killed, campaign.verdict(check_outcome(one, status, text, killed), left, files, text)


def main():
    arguments = campaign.parser(__doc__, "kill_cubes", 180).parse_args()
    campaign.check_stage("kill_cubes", arguments.stage, "nxhost")
    rounds = [(seed, draw(seed, arguments.only)) for seed in range(arguments.first, arguments.first + arguments.kills)]
    with tempfile.TemporaryDirectory() as work:
        binary = os.path.join(work, "cube_phases")
        subprocess.run([os.path.join(arguments.stage, "bin", "nxcc"), "-std=gnu11", "-O1",
                        os.path.join(HERE, "cube_phases.c"), "-o", binary], check=True)
        sys.exit(campaign.play("kill_cubes", arguments.log, rounds,
                               lambda one: run(one, arguments.stage, binary, arguments.patience)))


if __name__ == "__main__":
    main()

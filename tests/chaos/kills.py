#!/usr/bin/env python3
"""Kills one process of a job, or all that a host has, at a place that is known, again and again: the job ends in time,
leaves no process and no file behind, and names the rank, the host and the cause; with --ft the others go on.

With --only hosts=N the jobs run on N hosts, which are namespaces of this machine (on_hosts.sh); a host loses all its
processes there (who=namespace).

Each round is drawn from a seed of its own, round N of the campaign from seed FIRST + N, and is a line in the log, so a
campaign that was interrupted goes on where it stopped: the same command does it.
"""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import campaign  # noqa: E402
import chaos  # noqa: E402

COLLECTIVES = ["barrier", "bcast", "reduce", "allreduce", "reduce_scatter", "reduce_scatter_block", "scan", "exscan",
               "gather", "allgather", "scatter", "alltoall"]
PLACES = ["init", "messages", "finalize", "large"] + COLLECTIVES
BETWEEN_HOSTS = ["mux", "mux", "ofi", "xswitch", "pcie"]
TRANSPORTS = {"direct": None, "xswitch": "mesh:2x2", "dcm": "cube:3", "pcie": "boards:4x4", "pointdesign": "gh:2x2x2",
              "ideal": None, "ofi": None, "tcp": None, "mux": None}
NAMES = {"mpiexec": ("mpiexec",), "proxy": ("hydra_pmi_proxy",), "namespace": ("sleep",),
         "engine": ("ulfm-engine", "ulfm_hostd", "ulfm-host")}


def draw(seed, only):
    """A round: what is killed, where, over what."""
    r = random.Random(seed)
    one = {"ranks": r.choice([2, 3, 4, 5, 8]), "place": r.choice(PLACES), "delay": r.choice([0, r.random() * 0.005,
                                                                                         r.random() * 0.1]),
           "transport": r.choice(["direct", "direct", "xswitch", "dcm", "pcie", "pointdesign", "ideal", "ofi", "tcp"]),
           "who": r.choice(["rank", "rank", "rank", "rank", "mpiexec", "proxy", "engine"]),
           "signal": r.choice(["KILL", "KILL", "SEGV", "ABRT"]), "ft": r.random() < 0.5}
    if "hosts" in only:
        one["transport"] = r.choice(BETWEEN_HOSTS)
        one["who"] = r.choice(["rank", "rank", "mpiexec", "proxy", "namespace", "namespace"])
    one.update(only)
    one["victim"] = r.randrange(one["ranks"])
    if one["who"] == "namespace":  # not the launcher's host, whose processes are in its own namespace; ranks take turns
        one["victim"] = r.randrange(1, one["ranks"], one["hosts"])
    if one["who"] == "engine" and TRANSPORTS[one["transport"]] is None:
        one["transport"] = r.choice(["xswitch", "dcm", "pcie", "pointdesign"])
    if one["who"] != "rank":
        one["signal"], one["ft"] = "KILL", False
    return one


def host_of(pid):
    return os.readlink(f"/proc/{pid}/ns/uts")


def find(mark, one):
    """The process to kill, or None. A host ends with its first process, a sleep, which is that of the victim's host."""
    processes, host = chaos.processes_of(mark), None
    try:
        if one["who"] == "namespace":
            host = [host_of(pid) for pid, rank in processes if rank == one["victim"]][0]
        for pid, rank in processes:
            if one["who"] == "rank":
                if rank == one["victim"]:
                    return pid
                continue
            if campaign.name_of(pid) in NAMES[one["who"]] and (host is None or host_of(pid) == host):
                return pid
    except (OSError, IndexError):
        pass
    return None


def command(one, tree, binary, file):
    run = [os.path.join(tree, "bin", "ulfmrun")]
    if "hosts" in one:
        run = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "on_hosts.sh"), str(one["hosts"])]
    run += ["--ft"] if one["ft"] else []
    run += ["--transport", one["transport"]]
    if TRANSPORTS[one["transport"]]:
        run += ["--topology", TRANSPORTS[one["transport"]]]
    return run + ["-n", str(one["ranks"]), binary, one["place"], str(one["victim"]), file] + (["ft"] if one["ft"] else [])


def check_outcome(one, text, status, killed):
    """None, or the rule that was broken."""
    if status is None:
        return "it hung"
    if not killed:
        return None if status == 0 else f"nobody was killed, and it ended with status {status}"
    host = r"h\d" if "hosts" in one else re.escape(socket.gethostname())
    if status == 99 and "left behind" in text:
        return "processes were left behind"
    if "assert (" in text or "callback returned error" in text:
        return "it shows the launcher's functions"
    finished = one["place"] in ("finalize", "init")  # the victim may have been through when the signal came
    if one["who"] == "engine":  # another takes its place, and the job was ended by us; or it says what is missing
        ours = status in (0, 128 + signal.SIGTERM)
        return None if ours or "while it moved the" in text else f"it ended with status {status} and did not say why"
    if one["who"] in ("proxy", "namespace") and not re.search(rf"rank \d+ .*\bon {host}\b.*proxy", text):
        return None if status == 0 else "its message does not name ranks, host and cause"
    if one["who"] != "rank":
        return None
    named = re.search(rf"rank {one['victim']}\b.*\bon {host}\b.*"
                      rf"signal {int(getattr(signal, 'SIG' + one['signal']))}\b", text)
    if status == 0 and not named:
        return None if finished else "it ended well, without the victim"
    if not named:
        return f"its message does not name rank, host and cause (status {status})"
    living = text.count("went on")
    if one["ft"] and not finished and living != one["ranks"] - 1:
        return f"{living} of {one['ranks'] - 1} went on"
    return None


def run(one, tree, binary, patience):
    mark = f"ULFM_KILLS_MARK_{os.getpid()}_{time.monotonic_ns()}"
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ULFM_", "PMI_"))}
    environment.update(CHAOS_MARK=mark, ULFM_STAGE=tree)
    if one["who"] == "engine":
        environment["ULFM_ENGINE"] = "process"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as output:
        file, made = os.path.join(folder, "there"), os.path.join(folder, "made")
        os.mkdir(made)
        environment["TMPDIR"] = made
        before = campaign.files_in("/dev/shm")
        started = subprocess.Popen(command(one, tree, binary, file), stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=output, env=environment)
        killed = False
        if campaign.wait_for_file(file, started, patience):
            time.sleep(one["delay"])
            pid = find(mark, one)
            try:
                if pid is not None:
                    os.kill(pid, getattr(signal, "SIG" + one["signal"]))
                    killed = True
            except ProcessLookupError:
                pass
            if one["who"] == "engine" and killed and one["place"] not in ("init", "finalize"):
                time.sleep(0.5)  # the job goes on, and is ended
                started.terminate()
        status, left = campaign.finish(started, mark, patience)
        files = campaign.wait_until_gone(before, made, "/dev/shm")
        output.seek(0)
        text = output.read().decode(errors="replace")
    return killed, campaign.verdict(check_outcome(one, text, status, killed), left, files, text)


def main():
    parser = campaign.parser(__doc__, "kills", 500)
    parser.add_argument("--each", type=int, default=0, help="instead: so many in each collective of one turn")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    arguments = parser.parse_args()
    campaign.check_stage("kills", arguments.stage, "ulfmrun")
    fixed = [(seed, arguments.only) for seed in range(arguments.first, arguments.first + arguments.kills)]
    if arguments.each:
        fixed = [(arguments.first + i * arguments.each + k,
                  {"who": "rank", "place": place, "transport": "direct", **arguments.only})
                 for i, place in enumerate(COLLECTIVES) for k in range(arguments.each)]
    rounds = [(seed, draw(seed, only)) for seed, only in fixed]
    until = time.monotonic() + arguments.minutes * 60
    with tempfile.TemporaryDirectory() as work:
        binary = os.path.join(work, "phases")
        here = os.path.dirname(os.path.abspath(__file__))
        subprocess.run([os.path.join(arguments.stage, "bin", "mpicc"), "-O1", os.path.join(here, "phases.c"), "-o",
                        binary], check=True)
        sys.exit(campaign.play("kills", arguments.log, rounds,
                               lambda one: run(one, arguments.stage, binary, arguments.patience), until))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""unauthenticated_hosts.py COUNT SEED: connects COUNT times to every TCP port that is listened at in this network namespace, as nobody should.

In turn: not a word, half a word, random bytes, and the head of libfabric's connection request with nonsense behind it. Keeps
up to 500 connections open at a time, and at the end waits until the other side has closed all of them; 1 when it does not."""
import random
import select
import socket
import sys
import time

ALIVE = 500


def listening():
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                for line in list(lines)[1:]:
                    field = line.split()
                    if field[3] == "0A":
                        ports.add(int(field[1].split(":")[1], 16))
        except OSError:
            pass  # no IPv6 here
    return ports


def words(rng, turn):
    return [b"", b"\1", rng.randbytes(rng.randrange(1, 400)), bytes([3, 1, 0, 120]) + rng.randbytes(120)][turn % 4]


def take_closed(alive, patience):
    """Those that the other side has closed go; returns the others."""
    closed, _, _ = select.select(alive, [], [], patience)
    for one in closed:
        try:
            data = one.recv(4096)
        except OSError:
            data = b""
        if not data:
            one.close()
            alive.remove(one)
    return alive


def main():
    count, rng = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    ports, alive = listening(), []
    for turn in range(count):
        for port in ports:
            one = socket.socket()
            one.settimeout(30)
            one.connect(("127.0.0.1", port))
            try:
                one.send(words(rng, turn))
            except OSError:
                pass  # closed already
            alive.append(one)
        while len(alive) > ALIVE:
            take_closed(alive, 5)
    until = time.monotonic() + 60
    while alive and time.monotonic() < until:
        take_closed(alive, 1)
    print(f"{count} unauthenticated connections to each of {len(ports)} ports, {len(alive)} left")
    return 1 if alive or not ports else 0


sys.exit(main())

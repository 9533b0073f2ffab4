#!/usr/bin/env python3
"""unauthenticated_hosts.py COUNT SEED: connects COUNT times to each TCP port that is listened at in this network namespace.

As nobody should, in turn: not a word, half a word, random bytes, the head of libfabric's connection request with nonsense
behind it, greetings of this job's kind that are cut off, changed, or of another version, words that come one byte at a
time and never end, and a connection that is reset at once. Keeps up to 500 connections open at a time, and at the end
waits until the other side has closed all of them; 1 when it does not."""
import pathlib
import random
import re
import select
import socket
import struct
import sys
import time

ALIVE = 500
GREETING_HPP = pathlib.Path(__file__).parents[2] / "libulfm/transport/hosts/greeting.hpp"


def constant(name):
    found = re.search(rf"\b{name} = ([0-9a-fx']+)", GREETING_HPP.read_text())
    return int(found[1].replace("'", ""), 0)


GREETING, VERSION = constant("kGreetingMagic"), constant("kVersion")


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
    return sorted(ports)


def greeting(rng, version):
    """That of transport/hosts/greeting.hpp, with a proof that is none."""
    about = struct.pack("<IHHHHiIIQ", GREETING, version, rng.randrange(64), rng.randrange(64), rng.randrange(4),
                        rng.randrange(1, 1 << 22), 1 << 17, 0, rng.getrandbits(64))
    return about + rng.randbytes(16) + rng.randbytes(32)


def changed(rng, data):
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:] + rng.randbytes(rng.randrange(64))


KINDS = {
    "silent": lambda rng: b"",
    "half": lambda rng: b"\1",
    "random": lambda rng: rng.randbytes(rng.randrange(1, 400)),
    "libfabric": lambda rng: bytes([3, 1, 0, 120]) + rng.randbytes(120),
    "cut": lambda rng: greeting(rng, VERSION)[:rng.randrange(4, 80)],
    "wrong": lambda rng: greeting(rng, VERSION),
    "changed": lambda rng: changed(rng, greeting(rng, VERSION)),
    "other version": lambda rng: greeting(rng, VERSION + 1),
    "slow": lambda rng: greeting(rng, VERSION)[:1],
    "reset": lambda rng: b"",
}


class Peers:
    def __init__(self):
        self.alive, self.slow = [], []

    def come(self, port, kind, rng):
        one = socket.socket()
        one.settimeout(30)
        one.connect(("127.0.0.1", port))
        try:
            one.send(KINDS[kind](rng))
        except OSError:
            pass  # closed already
        if kind == "reset":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()
            return
        self.alive.append(one)
        if kind == "slow":
            self.slow.append(one)

    def go_on(self):
        """Another byte of those that are slow."""
        for one in self.slow:
            try:
                one.send(b"\0")
            except OSError:
                pass  # closed already

    def take_closed(self, patience):
        """Those that the other side has closed go."""
        closed, _, _ = select.select(self.alive, [], [], patience)
        for one in closed:
            try:
                data = one.recv(4096)
            except OSError:
                data = b""
            if not data:
                one.close()
                self.alive.remove(one)
        self.slow = [one for one in self.slow if one.fileno() >= 0]


def main():
    count, rng = int(sys.argv[1]), random.Random(int(sys.argv[2]))
    ports, peers, kinds = listening(), Peers(), list(KINDS)
    for turn in range(count):
        for port in ports:
            peers.come(port, kinds[turn % len(kinds)], rng)
        while len(peers.alive) > ALIVE:
            peers.take_closed(0.1)
            peers.go_on()
    until = time.monotonic() + 60
    while peers.alive and time.monotonic() < until:
        peers.take_closed(0.1)
        peers.go_on()
    print(f"{count} unauthenticated connections to each of {len(ports)} ports, {len(peers.alive)} left")
    return 1 if peers.alive or not ports else 0


sys.exit(main())

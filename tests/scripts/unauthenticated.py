#!/usr/bin/env python3
"""unauthenticated.py COUNT PID...: connects COUNT times to the TCP ports that these processes, Hydra's proxy and mpiexec listen at,
as nobody should.

Sockets that mpiexec has inherited itself are somebody else's and left out.
In turn: random bytes, none at all, single bytes now and then, and the right format with the wrong secret. Ends when the other
side has closed every connection, and prints how many there were; 1 when one was answered as only a peer should be."""
import os
import random
import re
import select
import socket
import struct
import sys

MAGIC = 0x6C746375
ALIVE = 200  # connections at a time


def sockets_of(pid):
    """Inodes of the sockets that a process holds."""
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found = re.match(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{fd}"))
        except OSError:
            continue
        if found:
            inodes.add(found[1])
    return inodes


def status_of(pid, field):
    with open(f"/proc/{pid}/status") as status:
        return re.search(rf"{field}:\t(\S+)", status.read())[1]


def listening_ports(pids):
    own, inherited = set(), set()
    for pid in pids:
        own |= sockets_of(pid)
        launched = True  # by this mpiexec or its proxy
        pid = int(status_of(pid, "PPid"))
        while pid > 1:
            if launched:
                own |= sockets_of(pid)
            else:
                inherited |= sockets_of(pid)
            launched = launched and status_of(pid, "Name") != "mpiexec"
            pid = int(status_of(pid, "PPid"))
    ports = []
    with open("/proc/net/tcp") as table:
        for line in list(table)[1:]:
            field = line.split()
            if field[3] == "0A" and field[9] in own - inherited:
                ports.append(int(field[1].split(":")[1], 16))
    return ports


def packet(kind, body):
    return struct.pack("<BBH", kind, 0, len(body)) + body


GREETING = packet(1, struct.pack("<IHH", MAGIC, 1, 0) + bytes(16))


class UnauthenticatedPeer:
    def __init__(self, port, manner):
        self.manner = manner
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self.got = 0
        first = {"random": random.randbytes(random.randint(1, 2000)), "silent": b"", "slow": GREETING[:1],
                 "wrong secret": GREETING}[manner]
        self.send(first)

    def send(self, data):
        try:
            self.socket.send(data)
        except OSError:
            pass

    def goes_on(self):
        """Reads what there is; False when the other side has closed."""
        try:
            data = self.socket.recv(4096)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.got += len(data)
        if data and self.manner == "wrong secret":
            self.send(packet(3, random.randbytes(32)) + packet(4, bytes(60)))
        return bool(data)


def main():
    count, pids = int(sys.argv[1]), sys.argv[2:]
    ports = listening_ports(pids)
    if not ports:
        sys.exit("unauthenticated peers: nobody listens")
    manners = ["random"] * 12 + ["wrong secret"] * 6 + ["silent", "slow"]
    alive, made, answered = {}, 0, 0
    random.seed(7)
    while made < count or alive:
        while made < count and len(alive) < ALIVE:
            one = UnauthenticatedPeer(ports[made % len(ports)], manners[made // len(ports) % len(manners)])
            alive[one.socket.fileno()] = one
            made += 1
        readable, _, _ = select.select(list(alive), [], [], 0.05)
        for fd in readable:
            one = alive[fd]
            if one.goes_on():
                continue
            # A challenge is all that an unauthenticated peer may get, and only for a greeting.
            answered += one.got > (52 if one.manner == "wrong secret" else 0)
            del alive[fd]
            one.socket.close()
        if not readable:
            for one in alive.values():
                if one.manner == "slow":
                    one.send(GREETING[1:2])
    print(f"unauthenticated peers: {made} connections to {len(ports)} ports, {answered} answered")
    sys.exit(answered != 0)


main()

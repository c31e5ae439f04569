#!/usr/bin/env python3
"""Numbered UDP datagrams at a fixed pace, and when each arrived.

probe.py receive PORT FILE [QUIET]
    receives until QUIET seconds (default 1.5) pass without one; writes FILE
probe.py send HOST PORT COUNT NANOSECONDS SIZE [ECN]
    SIZE is that of the IP packet; ECN is its ECN field, default 0

A datagram carries its number and the time just before it was sent. The time of its arrival is the
kernel's stamp (SO_TIMESTAMPNS), so waking the receiver costs nothing. FILE holds a line for each:
number, sent, received, in nanoseconds, and the ECN field that it came with.
"""

import os
import socket
import struct
import sys
import time

STAMP = 35  # SO_TIMESTAMPNS, of which Python has no name
FORCE = 33  # SO_RCVBUFFORCE
now = time.time_ns


def receive(port, file, quiet=1.5):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, STAMP, 1)
    try:
        sock.setsockopt(socket.SOL_SOCKET, FORCE, 1 << 25)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
    sock.bind(("", int(port)))
    sock.setblocking(False)
    print("ready", flush=True)
    received, last = [], None
    # The stamps are the kernel's, so there is no hurry: woken for each datagram, it would take a
    # processor from the measured programs.
    while last is None or now() - last < float(quiet) * 1e9:
        time.sleep(0.02)
        try:
            while True:
                data, notes, _, _ = sock.recvmsg(2048, 128)
                last = now()
                number, sent = struct.unpack("!QQ", data[:16])
                noted = {(level, kind): value for level, kind, value in notes}
                seconds, nanoseconds = struct.unpack("qq", noted[socket.SOL_SOCKET, STAMP])
                ecn = noted[socket.IPPROTO_IP, socket.IP_TOS][0] & 3
                received.append((number, sent, seconds * 1_000_000_000 + nanoseconds, ecn))
        except BlockingIOError:
            pass
    with open(f"{file}.part", "w", encoding="ascii") as out:
        out.writelines(f"{number} {sent} {at} {ecn}\n" for number, sent, at, ecn in received)
    os.rename(f"{file}.part", file)


def read(file):
    """What `receive` wrote, as (number, sent, received, ECN field)."""
    with open(file, encoding="ascii") as lines:
        return [tuple(map(int, line.split())) for line in lines]


def send(host, port, count, nanoseconds, size, ecn=0):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(ecn))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
    sock.connect((host, int(port)))
    step, padding, due = int(nanoseconds), bytes(int(size) - 28 - 16), now() + 1_000_000
    for number in range(int(count)):
        pause(due)
        sock.send(struct.pack("!QQ", number, now()) + padding)
        due += step


def pause(due):
    """Sleeps; watching the clock instead would take a processor from the measured programs.

    Being late does not add up.
    """
    left = due - now()
    if left > 0:
        time.sleep(left / 1e9)


if __name__ == "__main__":
    verbs = {"receive": receive, "send": send}
    if len(sys.argv) < 4 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])

#!/usr/bin/env python3
"""Numbered UDP datagrams, each with the kernel's time of its departure and of its arrival.

probe.py receive PORT FILE [QUIET]
    receives until QUIET seconds (default 1.5) pass without one
probe.py send HOST PORT COUNT NANOSECONDS SIZE FILE
    SIZE is that of the IP packet

FILE holds a line for each datagram: its number, and the time in nanoseconds. Both times are the kernel's
(SO_TIMESTAMPING: when the device took the packet; SO_TIMESTAMPNS: when it came), of CLOCK_REALTIME: a
sender or a receiver that has to wait for a processor changes nothing in them.
"""

import os
import select
import socket
import struct
import sys
import time

# Of <linux/socket.h>, <linux/net_tstamp.h> and <linux/errqueue.h>, of which Python has no names.
TIMESTAMPNS, TIMESTAMPING, RCVBUFFORCE = 35, 37, 33
TX_SOFTWARE, SOFTWARE, OPT_ID, OPT_TSONLY = 1 << 1, 1 << 4, 1 << 7, 1 << 11


def receive(port, file, quiet=1.5):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, TIMESTAMPNS, 1)
    try:
        sock.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 1 << 25)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    sock.bind(("", int(port)))
    sock.setblocking(False)
    print("ready", flush=True)
    arrived, last = [], None
    while last is None or time.monotonic() - last < float(quiet):
        select.select([sock], [], [], 0.1)
        try:
            while True:
                data, notes, _, _ = sock.recvmsg(2048, 128)
                last = time.monotonic()
                stamp = next(value for level, kind, value in notes if (level, kind) == (socket.SOL_SOCKET, TIMESTAMPNS))
                seconds, nanoseconds = struct.unpack("qq", stamp)
                arrived.append((struct.unpack("!Q", data[:8])[0], seconds * 1_000_000_000 + nanoseconds))
        except BlockingIOError:
            pass
    write(file, arrived)


def send(host, port, count, nanoseconds, size, file):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    sock.setsockopt(socket.SOL_SOCKET, TIMESTAMPING, TX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY)
    sock.connect((host, int(port)))
    padding, departed = bytes(int(size) - 28 - 8), []
    due = time.monotonic_ns()
    for number in range(int(count)):
        left = due - time.monotonic_ns()
        if left > 0:
            time.sleep(left / 1e9)
        sock.send(struct.pack("!Q", number) + padding)
        departed.extend(stamps(sock))
        due += int(nanoseconds)
    # The last stamps come when the packets have left.
    deadline = time.monotonic() + 1
    while len(departed) < int(count) and time.monotonic() < deadline:
        select.select([], [], [sock], 0.05)
        departed.extend(stamps(sock))
    write(file, departed)


def stamps(sock):
    """(number, time) of what has left since it was last asked."""
    found = []
    while True:
        try:
            _, notes, _, _ = sock.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return found
        number = at = None
        for level, kind, value in notes:
            if (level, kind) == (socket.SOL_SOCKET, TIMESTAMPING):
                seconds, nanoseconds = struct.unpack("qq", value[:16])
                at = seconds * 1_000_000_000 + nanoseconds
            elif level in (socket.IPPROTO_IP, socket.IPPROTO_IPV6):
                # struct sock_extended_err: errno, origin, type, code, pad, info, data.
                number = struct.unpack("=IBBBBII", value[:16])[6]
        if number is not None and at is not None:
            found.append((number, at))


def write(file, rows):
    with open(f"{file}.part", "w", encoding="ascii") as out:
        out.writelines(f"{number} {at}\n" for number, at in rows)
    os.rename(f"{file}.part", file)


def read(file):
    """What `send` or `receive` wrote, as a list of (number, time)."""
    with open(file, encoding="ascii") as lines:
        return [tuple(map(int, line.split())) for line in lines]


if __name__ == "__main__":
    verbs = {"receive": receive, "send": send}
    if len(sys.argv) < 4 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])

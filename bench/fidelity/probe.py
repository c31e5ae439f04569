#!/usr/bin/env python3
"""Numbered UDP datagrams at a fixed pace, and when each arrived.

probe.py hear PORT FILE [QUIET]             hears until QUIET seconds (default 1.5) pass without one; writes FILE
probe.py send HOST PORT COUNT NANOSECONDS SIZE   SIZE is that of the IP packet

A datagram carries its number and the time just before it was sent. The time of its arrival is the kernel's stamp
(SO_TIMESTAMPNS), so waking the hearer costs nothing. FILE holds a line for each: number, sent, heard, in nanoseconds.
"""
import os
import socket
import struct
import sys
import time

STAMP = 35  # SO_TIMESTAMPNS, of which Python has no name
now = time.time_ns


def hear(port, file, quiet=1.5):
    ears = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    ears.setsockopt(socket.SOL_SOCKET, STAMP, 1)
    ears.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    ears.bind(("", int(port)))
    ears.settimeout(30)
    print("ready", flush=True)
    heard = []
    try:
        while True:
            data, notes, _, _ = ears.recvmsg(2048, 128)
            ears.settimeout(float(quiet))
            number, sent = struct.unpack("!QQ", data[:16])
            seconds, nanoseconds = struct.unpack("qq", notes[0][2])
            heard.append((number, sent, seconds * 1_000_000_000 + nanoseconds))
    except TimeoutError:
        pass
    with open(f"{file}.part", "w", encoding="ascii") as out:
        out.writelines(f"{number} {sent} {at}\n" for number, sent, at in heard)
    os.rename(f"{file}.part", file)


def send(host, port, count, nanoseconds, size):
    mouth = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mouth.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 24)
    mouth.connect((host, int(port)))
    step, padding, due = int(nanoseconds), bytes(int(size) - 28 - 16), now() + 1_000_000
    for number in range(int(count)):
        pause(due)
        mouth.send(struct.pack("!QQ", number, now()) + padding)
        due += step


def pause(due):
    """Sleeps, and watches the clock for the last 150 µs; where there is one processor only, others need it meanwhile."""
    left = due - now()
    if left > 0 and os.cpu_count() == 1:
        time.sleep(left / 1e9)
        return
    if left > 200_000:
        time.sleep((left - 150_000) / 1e9)
    while now() < due:
        pass


if __name__ == "__main__":
    verbs = {"hear": hear, "send": send}
    if len(sys.argv) < 4 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])

#!/usr/bin/env python3
"""Network coding on the butterfly (Ahlswede, Cai, Li, Yeung; 2000), over UDP. Standard library only.

                 ┌─► left ──────────────► sink-1        butterfly.py source --to left,right
        a │      │    └──► joint ─► fork ──▲   │        butterfly.py copy --to sink-1,joint      (left; right and fork likewise)
      source ────┤           ▲        └────────▼        butterfly.py joint --to fork
        b │      └─► right ──┴──────────────► sink-2    butterfly.py sink

Both sinks want both streams, a and b. Routed, the link from joint to fork carries one of them: one and a half streams
a sink. Coded, it carries a XOR b, which each sink decodes with the stream that it has from its own side: two streams.
The source sends each way for some seconds; the packets say which, so the others need no clock.
"""
import argparse
import collections
import hashlib
import json
import socket
import struct
import time

HEAD = struct.Struct("!BBI")  # phase, stream, number
PHASES = ["routed", "coded"]
STREAMS = A, B, BOTH = range(3)
BIN = 0.1  # seconds


def body(stream, number, size):
    """The contents of a packet, which a decoder can check."""
    return hashlib.shake_128(f"{stream}/{number}".encode()).digest(size - HEAD.size)


def xor(one, other):
    return (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).to_bytes(len(one), "big")


class Sender:
    """Sends to the neighbours that it was made for."""

    def __init__(self, names, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.neighbours = [(socket.gethostbyname(name), port) for name in names]

    def send(self, packet, neighbour):
        try:
            self.socket.sendto(packet, neighbour)
        except ConnectionRefusedError:
            pass  # said of an earlier packet: that neighbour has ended

    def send_all(self, packet):
        for neighbour in self.neighbours:
            self.send(packet, neighbour)


def listen(port):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.bind(("", port))
    print("ready", flush=True)
    return sock


def source(options):
    """A packet of each stream at each tick: a to the first neighbour, b to the second."""
    sender = Sender(options.to, options.port)
    count, due = int(options.seconds / options.interval), time.monotonic()
    for phase, name in enumerate(PHASES):
        for number in range(count):
            if (left := due - time.monotonic()) > 0:
                time.sleep(left)
            for stream, neighbour in zip((A, B), sender.neighbours):
                sender.send(HEAD.pack(phase, stream, number) + body(stream, number, options.size), neighbour)
            due += options.interval
        print(json.dumps({"what": "phase", "phase": name, "packets": count, "size": options.size, "interval": options.interval}), flush=True)
        due += options.pause


def copy(options):
    """Passes everything on to each neighbour."""
    sock, sender = listen(options.port), Sender(options.to, options.port)
    while True:
        sender.send_all(sock.recv(65536))


def joint(options):
    """Routed packets go on as they are. Of coded ones, the two with the same number go on as one."""
    sock, sender = listen(options.port), Sender(options.to, options.port)
    waiting = {}
    while True:
        packet = sock.recv(65536)
        phase, _, number = HEAD.unpack_from(packet)
        if PHASES[phase] == "routed":
            sender.send_all(packet)
        elif number in waiting:
            sender.send_all(HEAD.pack(phase, BOTH, number) + xor(waiting.pop(number)[HEAD.size:], packet[HEAD.size:]))
        else:
            waiting[number] = packet


class Received:
    """The packets of one phase at a sink."""

    def __init__(self):
        self.bodies = [{} for _ in STREAMS]
        self.bins = [collections.Counter(), collections.Counter()]
        self.wrong = 0

    def take(self, stream, number, data):
        if number in self.bodies[stream]:
            return  # it came by another way
        self.bodies[stream][number] = data
        have = [stream for stream in STREAMS if number in self.bodies[stream]]
        if stream in (A, B):
            self.count(stream, number)
        if len(have) == 2 and BOTH in have:
            known = have[0]
            missing = B if known == A else A
            self.bodies[missing][number] = xor(self.bodies[known][number], self.bodies[BOTH][number])
            self.count(missing, number)

    def count(self, stream, number):
        data = self.bodies[stream][number]
        if data == body(stream, number, len(data) + HEAD.size):
            self.bins[stream][int(time.monotonic() / BIN)] += 1
        else:
            self.wrong += 1


def sink(options):
    """Counts the packets of both streams, received or decoded, in bins of 100 ms, until none comes any more."""
    sock = listen(options.port)
    received = [Received() for _ in PHASES]
    try:
        while True:
            packet = sock.recv(65536)
            sock.settimeout(options.silence)
            phase, stream, number = HEAD.unpack_from(packet)
            received[phase].take(stream, number, packet[HEAD.size:])
    except TimeoutError:
        pass
    for name, phase in zip(PHASES, received):
        print(json.dumps({"what": "sink", "phase": name, "wrong": phase.wrong, "a": sorted(phase.bins[A].items()),
                          "b": sorted(phase.bins[B].items())}))
        print(f"{name}: {phase.bins[A].total()} packets of a, {phase.bins[B].total()} of b, {phase.wrong} wrong", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["source", "copy", "joint", "sink"])
    parser.add_argument("--to", type=lambda names: names.split(","), default=[], metavar="NAME,…", help="the neighbours to send to")
    parser.add_argument("--port", type=int, default=4000, help="UDP port of all programs (default: %(default)s)")
    parser.add_argument("--size", type=int, default=1200, help="UDP payload of each packet (default: %(default)s)")
    parser.add_argument("--interval", type=float, default=0.00103, metavar="S", help="between two packets of a stream (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=5, help="length of each phase (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0.5, metavar="S", help="between the phases (default: %(default)s)")
    parser.add_argument("--silence", type=float, default=3, metavar="S", help="a sink ends after so long without a packet (default: %(default)s)")
    options = parser.parse_args()
    {"source": source, "copy": copy, "joint": joint, "sink": sink}[options.verb](options)


if __name__ == "__main__":
    main()

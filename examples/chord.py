#!/usr/bin/env python3
"""A Chord ring over UDP (Stoica et al., SIGCOMM 2001), and lookups in it. Standard library only.

chord.py node [--join HOST]      a member of the ring, until it is ended; without --join it begins a ring
chord.py lookup [--count N]      looks keys up, beginning at the member on the same host, and prints each as a line

A host is known by its name, and its place in the ring is the SHA-1 of it. A lookup is iterative: its origin asks one
member after the other, each of which names one nearer to the key. So its delay is the sum of their round trips.
"""
import argparse
import functools
import hashlib
import itertools
import json
import os
import socket
import threading
import time

BITS = 32
SPARE = 4  # successors that a member knows, so that the ring outlives some of them
PATIENCE = 1.0  # seconds until a question is asked again
TRIES = 3


def place(name):
    """Where a host or key is in the ring: a number of BITS bits."""
    return int.from_bytes(hashlib.sha1(name.encode()).digest()[: BITS // 8], "big")


def within(spot, after, upto):
    """Whether a spot lies on the arc from `after` (not included) clockwise to `upto` (included)."""
    return 0 < (spot - after) % (1 << BITS) <= ((upto - after) % (1 << BITS) or 1 << BITS)


class Lost(Exception):
    """A host does not answer."""


class Asker:
    """Asks hosts questions, one at a time. Each thread has its own."""

    numbers = itertools.count(os.getpid() << 32)

    def __init__(self, port):
        self.port = port
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(PATIENCE)

    def ask(self, host, verb, **fields):
        number = next(Asker.numbers)
        for _ in range(TRIES):
            self.socket.sendto(json.dumps({"number": number, "verb": verb, **fields}).encode(), (address(host), self.port))
            try:
                # Answers to what was asked twice are left over: they have another number.
                while (answer := json.loads(self.socket.recv(65536)))["number"] != number:
                    pass
                return answer
            except (TimeoutError, ConnectionRefusedError):
                continue
        raise Lost(host)

    def find(self, key, answer, path):
        """Follows the hints from a first answer to the owner of a key; `path` gets the hosts asked."""
        while "next" in answer:
            path.append(answer["next"])
            answer = self.ask(answer["next"], "step", key=key)
        return answer["owner"]


@functools.cache
def address(host):
    return socket.gethostbyname(host)


class Member:
    """The state of a member of the ring, its replies, and its maintenance."""

    def __init__(self, host, port):
        self.host, self.port, self.spot = host, port, place(host)
        self.successors = [host]
        self.fingers = [host] * BITS  # the owner of spot + 2^i
        self.predecessor, self.notified_at = None, 0.0
        self.asker = Asker(port)

    # Requests of others.

    def answer(self, question):
        if question["verb"] == "step":
            return self.step(question["key"])
        return self.notified(question["who"])

    def step(self, key):
        """The owner of a key if it is our successor, else the nearest known host before it."""
        if within(key, self.spot, place(self.successors[0])):
            return {"owner": self.successors[0]}
        for host in reversed([self.successors[0], *self.fingers]):
            if host != self.host and within(place(host), self.spot, key - 1):
                return {"next": host}
        return {"owner": self.successors[0]}

    def notified(self, host):
        """`host` has us as its successor. Returns our predecessor until now and our successors."""
        before = self.predecessor
        if before is None or within(place(host), place(before), self.spot - 1):
            self.predecessor = host
        if self.predecessor == host:
            self.notified_at = time.monotonic()
        return {"predecessor": before, "successors": self.successors}

    # Periodic work.

    def join(self, gate, pause):
        while True:
            try:
                self.successors = [self.asker.find(self.spot, {"next": gate}, [])]
                return
            except (Lost, socket.gaierror):
                time.sleep(pause)

    def maintain(self, pause):
        while True:
            try:
                while self.stabilise():
                    pass
                self.fix_fingers()
            except Lost as lost:
                self.forget(str(lost))
            if time.monotonic() - self.notified_at > 10 * pause + TRIES * PATIENCE:
                self.predecessor = None
            time.sleep(pause)

    def stabilise(self):
        """Notifies our successor, and takes a host between us and it for our successor."""
        successor = self.successors[0]
        if successor == self.host:
            said = {"predecessor": self.predecessor, "successors": self.successors}
        else:
            said = self.asker.ask(successor, "notify", who=self.host)
        between = said["predecessor"]
        if between not in (None, self.host) and within(place(between), self.spot, place(successor) - 1):
            self.successors.insert(0, between)
            return True
        self.successors = [successor, *(host for host in said["successors"] if host not in (successor, self.host))][:SPARE]
        return False

    def fix_fingers(self):
        last = self.successors[0]
        for bit in range(BITS):
            start = (self.spot + (1 << bit)) % (1 << BITS)
            # No host lies before the last finger: it is this one's as well.
            if not within(start, self.spot, place(last)):
                last = self.asker.find(start, self.step(start), [])
            self.fingers[bit] = last

    def forget(self, host):
        self.successors = [other for other in self.successors if other != host] or [self.predecessor or self.host]
        self.fingers = [self.successors[0] if other == host else other for other in self.fingers]


def node(options):
    member = Member(options.host, options.port)
    threading.Thread(target=listen, args=[member], daemon=True).start()
    number = options.host.rpartition("-")[2]
    time.sleep(options.stagger * int(number) if number.isdigit() else 0)
    if options.join and options.join != options.host:
        member.join(options.join, options.pause)
    print("joined", flush=True)
    member.maintain(options.pause)


def listen(member):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind(("", member.port))
    while True:
        data, sender = sock.recvfrom(65536)
        question = json.loads(data)
        sock.sendto(json.dumps({"number": question["number"], **member.answer(question)}).encode(), sender)


def lookup(options):
    asker, hops = Asker(options.port), 0
    for index in range(options.count):
        name, path = f"{options.host}/{index}", []
        began = time.monotonic()
        owner = asker.find(place(name), asker.ask(options.host, "step", key=place(name)), path)
        elapsed = time.monotonic() - began
        hops += len(path)
        print(json.dumps({"what": "lookup", "key": name, "owner": owner, "ms": round(elapsed * 1000, 3), "via": path}), flush=True)
        time.sleep(options.pause)
    print(f"{options.count} lookups, {hops} hops", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = os.environ.get("WINDTUNNEL_NODE", socket.gethostname())
    parser.add_argument("verb", choices=["node", "lookup"])
    parser.add_argument("--host", default=own, help="our own name (default: %(default)s)")
    parser.add_argument("--port", type=int, default=4000, help="the UDP port of all members (default: %(default)s)")
    parser.add_argument("--join", metavar="HOST", help="a member of the ring to join")
    parser.add_argument("--stagger", type=float, default=0, metavar="S", help="a host NAME-n joins after n times S seconds")
    parser.add_argument("--pause", type=float, default=0.5, metavar="S", help="between rounds, or lookups (default: %(default)s)")
    parser.add_argument("--count", type=int, default=10, help="lookups (default: %(default)s)")
    options = parser.parse_args()
    {"node": node, "lookup": lookup}[options.verb](options)


if __name__ == "__main__":
    main()

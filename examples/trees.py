#!/usr/bin/env python3
"""Sends a file down parallel n-ary trees of TCP connections, as SplitStream does. Standard library only.

trees.py peer                                              receives stripes, and passes them on, until it is ended
trees.py source --peers NAME --count N [--rounds 2x1,2x2]  sends to the peers NAME-1 to NAME-N, in one round after the other

A round of AxT cuts the file into T stripes, each of which goes down a tree of its own, in which each peer has up to A
children. The trees are turned against each other, so that a peer passes on in one of them only (where T is at most A).
The source prints how long each round took: from the first connection until every peer had confirmed all stripes.
"""
import argparse
import json
import os
import socket
import struct
import threading
import time

CHUNK = 1 << 16


def trees(peers, arity, count):
    """The trees as [peer, [subtree ...]]: complete ones, over the peers turned by 1/count of the circle each."""
    def subtree(order, index):
        below = range(arity * index + 1, min(arity * index + arity + 1, len(order)))
        return [order[index], [subtree(order, child) for child in below]]

    turns = [len(peers) * number // count for number in range(count)]
    return [subtree(peers[turn:] + peers[:turn], 0) for turn in turns]


class Stripe:
    """A part of the file that grows while it is received, and is sent from meanwhile."""

    def __init__(self, size, data=b""):
        self.size, self.data, self.grown = size, bytearray(data), threading.Condition()

    def add(self, more):
        with self.grown:
            self.data += more
            self.grown.notify_all()

    def part(self, begin):
        """The bytes from here on, at least one."""
        with self.grown:
            self.grown.wait_for(lambda: len(self.data) > begin)
            return bytes(self.data[begin:begin + CHUNK])

    def send(self, subtree, port, title):
        """Sends all of it to the root of a subtree, and returns when all peers in it have confirmed."""
        host, below = subtree
        with connect(host, port) as connection:
            header = json.dumps({"title": title, "size": self.size, "below": below}).encode()
            connection.sendall(struct.pack("!I", len(header)) + header)
            sent = 0
            while sent < self.size:
                part = self.part(sent)
                connection.sendall(part)
                sent += len(part)
            receive(connection, 1)

    def spread(self, subtrees, port, title):
        """Begins to send to several; the threads end with the confirmations."""
        threads = [threading.Thread(target=self.send, args=[subtree, port, title]) for subtree in subtrees]
        for thread in threads:
            thread.start()
        return threads


def connect(host, port):
    connection = socket.socket()
    try:
        # Where another is the machine's default, only `user: root` may choose it.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    except OSError:
        pass
    connection.connect((host, port))
    return connection


def receive(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError(f"{connection.getpeername()[0]} ended in the middle")
        data += more
    return data


def peer(options):
    listener = socket.create_server(("", options.port), backlog=64)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=relay, args=[connection, options.port]).start()


def relay(connection, port):
    """Receives one stripe, passes it on while it comes, and confirms it for the whole subtree."""
    with connection:
        header = json.loads(receive(connection, struct.unpack("!I", receive(connection, 4))[0]))
        stripe, began = Stripe(header["size"]), time.monotonic()
        threads = stripe.spread(header["below"], port, header["title"])
        missing = stripe.size
        while missing:
            more = connection.recv(min(missing, CHUNK))
            if not more:
                raise EOFError("the stripe ended in the middle")
            stripe.add(more)
            missing -= len(more)
        seconds = time.monotonic() - began
        for thread in threads:
            thread.join()
        connection.sendall(b".")
    print(json.dumps({"what": "stripe", **header["title"], "bytes": stripe.size, "seconds": round(seconds, 4)}) + "\n", end="", flush=True)


def source(options):
    peers = [f"{options.peers}-{number}" for number in range(1, options.count + 1)]
    for words in options.rounds.split(","):
        arity, count = map(int, words.split("x"))
        size = options.size // count
        began, threads = time.monotonic(), []
        for number, tree in enumerate(trees(peers, arity, count)):
            stripe = Stripe(size, bytes([number]) * size)
            threads += stripe.spread([tree], options.port, {"arity": arity, "trees": count, "tree": number})
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
        print(json.dumps({"what": "round", "arity": arity, "trees": count, "bytes": size * count, "seconds": round(seconds, 4)}) + "\n", end="", flush=True)
        time.sleep(options.pause)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["peer", "source"])
    parser.add_argument("--port", type=int, default=int(os.environ.get("TREES_PORT", 4000)), help="TCP port of the peers (default: %(default)s)")
    parser.add_argument("--peers", metavar="NAME", default="peer", help="the peers are NAME-1, NAME-2 … (default: %(default)s)")
    parser.add_argument("--count", type=int, default=16, help="how many peers (default: %(default)s)")
    parser.add_argument("--size", type=int, default=1_000_000, help="bytes of the file (default: %(default)s)")
    parser.add_argument("--rounds", default="2x1,2x2,2x4,4x1,4x2,4x4", help="arity x trees of each (default: %(default)s)")
    parser.add_argument("--pause", type=float, default=0.2, metavar="S", help="between rounds (default: %(default)s)")
    options = parser.parse_args()
    {"peer": peer, "source": source}[options.verb](options)


if __name__ == "__main__":
    main()

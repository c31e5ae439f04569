#!/usr/bin/env python3
"""stream.py receive PORT STREAMS SECONDS   says of each stream what came in bins of 100 ms, until SECONDS after its first byte
stream.py send HOST PORT NAME              one TCP stream without end (CUBIC); tries again while nothing listens

Unlike `traffic.py sink` the receiver does not wait for the end of a stream: a slow one has seconds of data in its socket then.
"""
import collections
import json
import socket
import sys
import threading
import time

BIN = 100_000_000
LABEL = 16


def receive(port, streams, seconds):
    listener = socket.create_server(("", int(port)), backlog=64)
    for _ in range(int(streams)):
        threading.Thread(target=drain, args=[listener.accept()[0], float(seconds)]).start()


def drain(connection, seconds):
    label = connection.recv(LABEL, socket.MSG_WAITALL)
    first = time.monotonic_ns()
    bins = collections.Counter()
    while time.monotonic_ns() < first + int(seconds * 1e9):
        size = len(connection.recv(1 << 18))
        if not size:
            break
        bins[time.monotonic_ns() // BIN] += size
    said = {"what": "stream", "label": label.decode().strip(), "first_ns": first, "bins": sorted(bins.items()), "bin_ns": BIN}
    # With its end at once: print() writes that by itself, and other streams end at the same time.
    print(json.dumps(said) + "\n", end="", flush=True)
    while connection.recv(1 << 18):
        pass


def send(host, port, name):
    connection = connect(host, int(port))
    connection.sendall(name.encode().ljust(LABEL))
    while True:
        connection.sendall(bytes(1 << 16))


def connect(host, port):
    while True:
        connection = socket.socket()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        try:
            connection.connect((host, port))
            return connection
        except ConnectionRefusedError:
            connection.close()
            time.sleep(0.1)


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](*sys.argv[2:])

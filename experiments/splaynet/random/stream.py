#!/usr/bin/env python3
"""stream.py receive PORT STREAMS SECONDS   says of each stream what came in bins of 100 ms, until SECONDS after its first byte,
                                       or until SIGTERM
stream.py send HOST PORT NAME              one TCP stream without end (CUBIC); tries again while nothing listens

Unlike `traffic.py sink` the receiver does not wait for the end of a stream: a slow one has seconds of data in its socket then.
"""
import collections
import json
import signal
import socket
import sys
import threading
import time

BIN = 100_000_000
LABEL = 16


def receive(port, streams, seconds):
    listener = socket.create_server(("", int(port)), backlog=64)
    # Threads inherit this: only the main thread takes the run's end, which may come before a stream's.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    taken = []
    threading.Thread(target=accept, args=[listener, int(streams), float(seconds), taken], daemon=True).start()
    signal.sigwait([signal.SIGTERM])
    for stream in taken:
        stream.say()


def accept(listener, streams, seconds, taken):
    for _ in range(streams):
        taken.append(Stream(listener.accept()[0]))
        threading.Thread(target=taken[-1].drain, args=[seconds], daemon=True).start()


class Stream:
    def __init__(self, connection):
        self.connection = connection
        self.label, self.first, self.bins = "", 0, collections.Counter()
        self.unsaid = threading.Lock()

    def drain(self, seconds):
        label = self.connection.recv(LABEL, socket.MSG_WAITALL)
        self.first = time.monotonic_ns()
        self.label = label.decode().strip()
        while time.monotonic_ns() < self.first + int(seconds * 1e9):
            size = len(self.connection.recv(1 << 18))
            if not size:
                break
            self.bins[time.monotonic_ns() // BIN] += size
        self.say()
        while self.connection.recv(1 << 18):
            pass

    def say(self):
        """Once, and only if anything came."""
        if not self.label or not self.unsaid.acquire(blocking=False):
            return
        said = {"what": "stream", "label": self.label, "first_ns": self.first, "bins": sorted(self.bins.copy().items()), "bin_ns": BIN}
        # With its end at once: print() writes that by itself, and other streams end at the same time.
        print(json.dumps(said) + "\n", end="", flush=True)


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

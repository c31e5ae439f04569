#!/usr/bin/env python3
"""Traffic for the examples: bulk data, and the round-trip time beside it.

bulk.py serve PORT                 sends zeros on each connection
bulk.py fetch HOST PORT SECONDS    receives them for SECONDS and prints the goodput
bulk.py probe HOST PORT COUNT      connects COUNT times, 100 ms apart, prints the median and the worst time
bulk.py get HOST PORT BYTES        receives BYTES and prints how long it took
"""
import socket
import sys
import threading
import time


def serve(port):
    listener = socket.create_server(("", int(port)), family=socket.AF_INET6, dualstack_ipv6=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=send, args=[connection], daemon=True).start()


def send(connection):
    with connection:
        try:
            # Cubic fills queues. Where another is the machine's default, only `user: root` may choose it.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        except OSError:
            pass
        try:
            # A probe closes at once, so nothing is sent before a request.
            if connection.recv(1):
                while True:
                    connection.sendall(bytes(65536))
        except OSError:
            pass


def fetch(host, port, seconds):
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.send(b"x")
        began, received = time.monotonic(), 0
        while time.monotonic() - began < float(seconds):
            received += len(connection.recv(65536))
        elapsed = time.monotonic() - began
    print(f"goodput {received * 8 / elapsed / 1e6:.2f} Mbit/s")


def probe(host, port, count):
    times = []
    for _ in range(int(count)):
        began = time.monotonic()
        socket.create_connection((host, int(port)), timeout=10).close()
        times.append((time.monotonic() - began) * 1000)
        time.sleep(0.1)
    times.sort()
    print(f"connect: median {times[len(times) // 2]:.0f} ms, worst {times[-1]:.0f} ms")


def get(host, port, size):
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.send(b"x")
        began, missing = time.monotonic(), int(size)
        while missing > 0:
            missing -= len(connection.recv(65536))
    print(f"{size} bytes from {host} in {time.monotonic() - began:.2f} s")



if __name__ == "__main__":
    verbs = {"serve": serve, "fetch": fetch, "probe": probe, "get": get}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    verbs[sys.argv[1]](*sys.argv[2:])

#!/usr/bin/env python3
"""The programs of the SplayNet experiments. Each writes one JSON object a line on standard output.

traffic.py echo PORT                            answers each request on a TCP connection
traffic.py rpc HOST PORT SECONDS                requests of 64 bytes one after the other, and their times
traffic.py sink PORT STREAMS                    receives STREAMS TCP streams, and counts bytes in bins of 100 ms
traffic.py stream HOST PORT BYTES|SECONDSs      one TCP stream (CUBIC; TRAFFIC_CONTROL=reno for another)
traffic.py messages HOST PORT SECONDS SIZE...   messages with TCP_NODELAY, for SECONDS each size; each message stays a
                                                segment of its own (MSG_EOR), unless TRAFFIC_MERGE=1
traffic.py beat HOST PORT COUNT MICROSECONDS SIZE   numbered UDP datagrams at a fixed pace
traffic.py collect PORT SECONDS                 receives them until SECONDS have passed without one
"""
import collections
import json
import os
import socket
import struct
import sys
import threading
import time

BIN = 100_000_000  # nanoseconds
LABEL = 16  # the first bytes of a stream name it
now = time.monotonic_ns


def say(**fields):
    print(json.dumps(fields), flush=True)


def listen(port):
    return socket.create_server(("", int(port)), backlog=16)


def connect(host, port):
    """A connection that sends with CUBIC, whatever the machine's default. Programs that send are `user: root` for this."""
    connection = socket.socket()
    control = os.environ.get("TRAFFIC_CONTROL", "cubic")
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
    window = os.environ.get("TRAFFIC_WINDOW")
    if window:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * int(window))
    connection.connect((host, int(port)))
    return connection


def receive(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def echo(port):
    listener = listen(port)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=[connection], daemon=True).start()


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while True:
            connection.sendall(receive(connection, 64))
    except (EOFError, OSError):
        connection.close()


def rpc(host, port, seconds):
    connection = connect(host, port)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times, end = [], now() + int(float(seconds) * 1e9)
    while now() < end:
        began = now()
        connection.sendall(bytes(64))
        receive(connection, 64)
        times.append(now() - began)
    say(what="rpc", times_ns=times)


def sink(port, streams):
    listener, threads = listen(port), []
    window = os.environ.get("TRAFFIC_WINDOW")
    if window:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, int(window))
    for _ in range(int(streams)):
        connection, _ = listener.accept()
        if window:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, int(window))
        threads.append(threading.Thread(target=drain, args=[connection]))
        threads[-1].start()
    for thread in threads:
        thread.join()


def drain(connection):
    """Reads a stream to its end. A bin's key is its start: monotonic time, the same clock for all nodes."""
    label = receive(connection, LABEL)
    first = last = now()
    total, bins = LABEL, collections.Counter()
    while True:
        size = len(connection.recv(1 << 18))
        if not size:
            break
        last = now()
        total += size
        bins[last // BIN] += size
    connection.close()
    say(what="stream", label=label.decode().strip(), first_ns=first, last_ns=last, bytes=total,
        bins=sorted(bins.items()), bin_ns=BIN)


def stream(host, port, amount):
    began = now()
    connection = connect(host, port)
    label = os.environ.get("WINDTUNNEL_NODE", "node") + os.environ.get("TRAFFIC_LABEL", "")
    connection.sendall(label.encode().ljust(LABEL)[:LABEL])
    chunk, sent = bytes(65536), LABEL
    if amount.endswith("s"):
        end = began + int(float(amount[:-1]) * 1e9)
        while now() < end:
            sent += connection.send(chunk)
    else:
        while sent < int(amount):
            sent += connection.send(chunk[: int(amount) - sent])
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)  # the receiver closes when it has read everything
    say(what="sent", label=label, began_ns=began, ended_ns=now(), bytes=sent)


def messages(host, port, seconds, *sizes):
    flags = 0 if os.environ.get("TRAFFIC_MERGE") else socket.MSG_EOR
    for size in sizes:
        connection = connect(host, port)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A small buffer: what waits in it at the end is not long in coming.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        connection.sendall(size.encode().ljust(LABEL))
        data, count, end = bytes(int(size)), 0, now() + int(float(seconds) * 1e9)
        send = connection.send
        while now() < end:
            for _ in range(16):
                send(data, flags)
            count += 16
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
        say(what="messages", size=int(size), count=count)
        connection.close()


def beat(host, port, count, microseconds, size):
    beats = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    beats.connect((host, int(port)))
    step, padding = int(float(microseconds) * 1000), bytes(int(size) - 16)
    due, sent = now(), []
    for number in range(int(count)):
        pause(due)
        sent.append(now())
        try:
            beats.send(struct.pack("!QQ", number, sent[-1]) + padding)
        except ConnectionRefusedError:
            pass
        due += step
    say(what="beat", count=int(count), sent_ns=sent)


def pause(due):
    """Sleeps until shortly before, and watches the clock for the rest."""
    left = due - now()
    if left > 150_000:
        time.sleep((left - 100_000) / 1e9)
    while now() < due:
        pass


def collect(port, seconds):
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    sock.bind(("", int(port)))
    say(what="ready")
    received = []
    try:
        while True:
            data = sock.recv(65536)
            # Before the first one it waits for ever: programs start one after the other.
            sock.settimeout(float(seconds))
            received.append((*struct.unpack("!QQ", data[:16]), now()))
    except TimeoutError:
        say(what="received", number_sent_received_ns=received)


VERBS = {"echo": (echo, 1), "rpc": (rpc, 3), "sink": (sink, 2), "stream": (stream, 3), "messages": (messages, 4),
         "beat": (beat, 5), "collect": (collect, 2)}

if __name__ == "__main__":
    verb, *words = sys.argv[1:] or [""]
    if verb not in VERBS or len(words) < VERBS[verb][1]:
        sys.exit(__doc__)
    VERBS[verb][0](*words)

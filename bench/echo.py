#!/usr/bin/env python3
"""echo.py HOST COUNT MICROSECONDS: ICMP echo requests at a fixed pace; prints each round trip in nanoseconds, or `lost`.

The other kernel answers without waking a program, and the answer's time is the kernel's stamp of its arrival: what is left
beside the network is a few tens of microseconds of both kernels.
"""
import select
import socket
import struct
import sys
import time

STAMP = 35  # SO_TIMESTAMPNS, of which Python has no name


def main(host, count, microseconds):
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    echo.setsockopt(socket.SOL_SOCKET, STAMP, 1)
    echo.connect((host, 0))
    step, due = int(microseconds) * 1000, time.time_ns() + 1_000_000
    sent, times = {}, {}
    for number in range(1, int(count) + 1):
        listen(echo, due, sent, times)
        request = struct.pack("!BBHHHQ", 8, 0, 0, 0, number & 0xFFFF, number)
        sent[number] = time.time_ns()
        echo.send(request)
        due += step
    end = time.time_ns() + 1_500_000_000
    while len(times) < int(count) and time.time_ns() < end:
        listen(echo, min(end, time.time_ns() + 100_000_000), sent, times)
    for number in range(1, int(count) + 1):
        print(times.get(number, "lost"))


def listen(echo, until, sent, times):
    """Takes answers until it is time to send again; watches the clock for the last 100 µs."""
    while (left := until - time.time_ns()) > 0:
        if left > 100_000:
            ready, _, _ = select.select([echo], [], [], (left - 100_000) / 1e9)
            if ready:
                data, notes, _, _ = echo.recvmsg(2048, 256)
                number = struct.unpack("!Q", data[8:16])[0]
                for _, kind, value in notes:
                    if kind == STAMP:
                        seconds, nanoseconds = struct.unpack("qq", value)
                        times[number] = seconds * 1_000_000_000 + nanoseconds - sent[number]


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])

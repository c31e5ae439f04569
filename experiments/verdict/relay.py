#!/usr/bin/env python3
"""Carries frames between two devices, each way with a delay of its own.

relay.py DEVICE DEVICE MILLISECONDS MILLISECONDS [LOSS]
    the delay of what comes from the first device, that of what comes from the second, and the share of frames that is lost

Frames keep their virtio header (PACKET_VNET_HDR), so that what the kernel has left of checksums and segmentation is done where
they go on. A frame leaves some 0.1 ms after its time.
"""

import heapq
import random
import select
import socket
import sys
import time

# Of <linux/if_packet.h>.
SOL_PACKET, VNET_HDR, IGNORE_OUTGOING, ALL = 263, 15, 23, 3


def opened(device):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(SOL_PACKET, VNET_HDR, 1)
    sock.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    sock.bind((device, ALL))
    sock.setblocking(False)
    return sock


def main():
    first, second = opened(sys.argv[1]), opened(sys.argv[2])
    ways = {first: (second, float(sys.argv[3]) / 1e3), second: (first, float(sys.argv[4]) / 1e3)}
    loss = float(sys.argv[5]) if len(sys.argv) > 5 else 0
    waiting, number = [], 0
    while True:
        wait = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for sock in select.select([first, second], [], [], wait)[0]:
            other, delay = ways[sock]
            try:
                while True:
                    frame = sock.recv(1 << 17)
                    if random.random() < loss:
                        continue
                    number += 1
                    heapq.heappush(waiting, (time.monotonic() + delay, number, other, frame))
            except BlockingIOError:
                pass
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, other, frame = heapq.heappop(waiting)
            try:
                other.send(frame)
            except OSError:
                pass


main()

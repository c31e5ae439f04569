#!/usr/bin/env python3
"""slow_disk.py DEVICE MB RATE   a disk of so many MB that does one request at a time, RATE MB a second.

Serves memory as DEVICE (/dev/nbdN) by the network block device's protocol, until it is killed. For the guest, in which
all other disks are memory and as fast as its processor: who has how much of such a disk, no scheduler decides.
"""
import fcntl
import mmap
import os
import socket
import struct
import sys
import threading
import time

SET_SOCK, SET_BLKSIZE, DO_IT, SET_SIZE_BLOCKS, SET_FLAGS = (0xAB00 + number for number in (0, 1, 3, 7, 10))
READ, WRITE, DISCONNECT = range(3)
BLOCK = 4096


def exactly(stream, length):
    data = bytearray()
    while len(data) < length:
        part = stream.recv(length - len(data))
        if not part:
            os._exit(0)
        data += part
    return data


def serve(stream, memory, rate):
    free = time.monotonic()
    while True:
        _, kind, handle, at, length = struct.unpack(">IIQQI", exactly(stream, 28))
        kind &= 0xFFFF
        if kind == DISCONNECT:
            os._exit(0)
        if kind == WRITE:
            memory[at:at + length] = exactly(stream, length)
        if kind in (READ, WRITE):
            free = max(free, time.monotonic()) + length / rate
            time.sleep(max(0, free - time.monotonic()))
        reply = struct.pack(">IIQ", 0x67446698, 0, handle)
        stream.sendall(reply + memory[at:at + length] if kind == READ else reply)


def main():
    device, size, rate = sys.argv[1], int(sys.argv[2]) << 20, float(sys.argv[3]) * 1e6
    kernel, own = socket.socketpair()
    threading.Thread(target=serve, args=(own, mmap.mmap(-1, size), rate), daemon=True).start()
    disk = os.open(device, os.O_RDWR)
    for request, value in ((SET_BLKSIZE, BLOCK), (SET_SIZE_BLOCKS, size // BLOCK), (SET_FLAGS, 1),
                           (SET_SOCK, kernel.fileno())):
        fcntl.ioctl(disk, request, value)
    fcntl.ioctl(disk, DO_IT)


main()

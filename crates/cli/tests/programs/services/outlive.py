"""Servers whose replies depend on the request alone, and their clients, which wait for a file `go`.

outlive.py serve HOST PORT: `get N` is answered with N bytes, `time` with the time of day, any other
line with itself
outlive.py fetch HOST PORT BYTES: reads so many bytes; prints `half`, and `same` or `other`
outlive.py page HOST PORT PATH BYTES: the same of a page, by HTTP/0.9, whose replies have no head
outlive.py talk HOST PORT: a line each 20 ms; prints each answer that it gets
outlive.py time HOST PORT: asks once for the time of day, then as talk
"""
import hashlib
import itertools
import os
import socket
import sys
import threading
import time

KIND, HOST, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
BLOCK = 32


def content(size):
    blocks = (hashlib.sha256(str(n).encode()).digest() for n in range(-(-size // BLOCK)))
    return b"".join(blocks)[:size]


def answer(connection):
    try:
        with connection:
            for line in connection.makefile("rb"):
                words = line.split()
                if words[:1] == [b"get"]:
                    connection.sendall(content(int(words[1])))
                elif words[:1] == [b"time"]:
                    connection.sendall(f"{time.time_ns()}\n".encode())
                else:
                    connection.sendall(line)
    except OSError as error:
        print(type(error).__name__, flush=True)


def serve():
    family = socket.AF_INET6 if ":" in HOST else socket.AF_INET
    listener = socket.create_server((HOST, PORT), family=family)
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()


def connect():
    while not os.path.exists("go"):
        time.sleep(0.01)
    it = socket.create_connection((HOST, PORT), timeout=20)
    it.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return it


def fetch(request, size):
    with connect() as it:
        it.sendall(request)
        read, last, silence, begun = bytearray(), time.monotonic(), 0, False
        while len(read) < size:
            piece = it.recv(1 << 16)
            if not piece:
                break
            now = time.monotonic()
            silence, last = max(silence, now - last), now
            read += piece
            if len(read) * 10 > size and not begun:
                begun = True
                print("begun", flush=True)
    same = bytes(read) == content(size)
    print("same" if same else f"other: {len(read)} of {size}", flush=True)
    print(f"silence {silence:.3f}", flush=True)


def line(it, text):
    it.sendall(text + b"\n")
    read = b""
    while not read.endswith(b"\n"):
        piece = it.recv(4096)
        if not piece:
            raise EOFError
        read += piece
    return read[:-1]


def talk(first=None):
    with connect() as it:
        if first:
            print(line(it, first).decode(), flush=True)
        for number in itertools.count():
            text = f"line {number}"
            read = line(it, text.encode()).decode()
            print(read if read == text else f"other: {read}", flush=True)
            time.sleep(0.02)


try:
    if KIND == "serve":
        serve()
    elif KIND == "fetch":
        fetch(f"get {sys.argv[4]}\n".encode(), int(sys.argv[4]))
    elif KIND == "page":
        fetch(f"GET {sys.argv[4]}\r\n".encode(), int(sys.argv[5]))
    else:
        talk(b"time" if KIND == "time" else None)
except (OSError, EOFError) as error:
    print(f"failed: {type(error).__name__}", flush=True)

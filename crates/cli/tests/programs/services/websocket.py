"""WebSockets, as far as is needed for text (RFC 6455).

websocket.py serve HOST PORT: answers each text with the name of its node and the text
websocket.py talk HOST PORT: once there is a file `go`, sends numbers from 0 on over one socket, and
over another one, from 0 on, when that ends; prints each answer, and why a socket ended
"""
import base64
import hashlib
import itertools
import os
import socket
import struct
import sys
import threading
import time

HOST, PORT = sys.argv[2], int(sys.argv[3])
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
FINAL_TEXT, MASKED, LENGTH_16 = 0x81, 0x80, 126


def exactly(stream, count):
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def head(stream):
    lines = iter(stream.readline, b"\r\n")
    return {key.strip().lower(): value.strip() for key, _, value in (line.partition(b":") for line in lines)}


def accept_of(key):
    return base64.b64encode(hashlib.sha1(key + GUID).digest())


def receive(stream):
    first, second = exactly(stream, 2)
    if first != FINAL_TEXT:
        raise EOFError
    length = second & 0x7F
    if length == LENGTH_16:
        (length,) = struct.unpack(">H", exactly(stream, 2))
    mask = exactly(stream, 4) if second & MASKED else bytes(4)
    return bytes(byte ^ mask[at % 4] for at, byte in enumerate(exactly(stream, length)))


def send(connection, text, mask=b""):
    body = bytes(byte ^ mask[at % 4] for at, byte in enumerate(text)) if mask else text
    connection.sendall(bytes([FINAL_TEXT, len(text) | (MASKED if mask else 0)]) + mask + body)


def answer(connection):
    with connection, connection.makefile("rb") as stream:
        try:
            key = head(stream)[b"sec-websocket-key"]
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                               b"Sec-WebSocket-Accept: " + accept_of(key) + b"\r\n\r\n")
            while True:
                send(connection, os.environb[b"WINDTUNNEL_NODE"] + b" " + receive(stream))
        except (OSError, EOFError) as error:
            print(type(error).__name__, flush=True)


def talk():
    key = base64.b64encode(os.urandom(16))
    with socket.create_connection((HOST, PORT), timeout=20) as it, it.makefile("rb") as stream:
        it.sendall(b"GET / HTTP/1.1\r\nHost: www\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                   b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + key + b"\r\n\r\n")
        assert head(stream)[b"sec-websocket-accept"] == accept_of(key)
        for number in itertools.count():
            send(it, str(number).encode(), os.urandom(4))
            print(receive(stream).decode(), flush=True)
            time.sleep(0.03)


if sys.argv[1] == "serve":
    listener = socket.create_server((HOST, PORT))
    while True:
        threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
while not os.path.exists("go"):
    time.sleep(0.01)
while True:
    try:
        talk()
    except (OSError, EOFError) as error:
        print(f"ended: {type(error).__name__}", flush=True)

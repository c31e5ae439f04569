"""A sender that writes 10 KB every 0.2 s, and a receiver that reads all of it.

stream.py send HOST PORT WRITES
stream.py receive PORT
"""

import socket
import sys
import time

SIZE = 10_000
SPACING = 0.2


def send(host, port, writes):
    with socket.create_connection((host, port)) as connection:
        begin = time.monotonic()
        for number in range(writes):
            time.sleep(max(0.0, begin + number * SPACING - time.monotonic()))
            connection.sendall(b"x" * SIZE)


def receive(port):
    with socket.create_server(("", port)) as listener:
        while True:
            connection, _ = listener.accept()
            with connection:
                while connection.recv(65536):
                    pass


if sys.argv[1] == "send":
    send(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    receive(int(sys.argv[2]))

#!/usr/bin/env python3
"""flows.py PEER EACH FROM UNTIL: a TCP connection of 0.2 s to PEER every EACH seconds, from and until these seconds after the start; and
an answer to each connection. Prints how many it made."""
import random
import socket
import sys
import threading
import time


def answer(listener):
    while True:
        connection, _ = listener.accept()
        connection.recv(1)
        connection.close()


def main(peer, each, begin, until):
    listener = socket.create_server(("", 7000), backlog=64)
    threading.Thread(target=answer, args=(listener,), daemon=True).start()
    start, count = time.monotonic(), 0
    due = start + begin + random.random() * each
    while due < start + until:
        time.sleep(max(0.0, due - time.monotonic()))
        try:
            with socket.create_connection((peer, 7000), 2) as connection:
                connection.send(b"x")
                # Longer than announcements take: a flow that has ended by then is not announced.
                time.sleep(0.2)
            count += 1
        except OSError:
            pass
        due = max(due + each, time.monotonic())
    print(count, flush=True)
    time.sleep(1)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(sys.argv[1], *map(float, sys.argv[2:]))

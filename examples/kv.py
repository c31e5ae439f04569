"""A key-value service for examples/five.yaml: reads alone, and each costs some processor time.

python3 kv.py serve PORT            answers `KEY` with its value; datagrams to the port are read and thrown away
python3 kv.py flood HOST PORT RATE  sends so many datagrams of ten bytes a second
python3 kv.py ask HOST PORT SECONDS reads a key every 50 ms, each by a connection of its own, and tries again 10 ms
                                    after a failure; prints what it saw
"""
import hashlib
import socket
import sys
import threading
import time


def serve(port):
    name = socket.gethostname()
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("", port))
    threading.Thread(target=lambda: [sink.recv(100) for _ in iter(int, 1)], daemon=True).start()
    listener = socket.create_server(("", port), backlog=100)
    while True:
        stream, _ = listener.accept()
        with stream:
            stream.settimeout(2)
            try:
                key = stream.recv(100)
                value = hashlib.pbkdf2_hmac("sha256", key, b"kv", 2000).hex()
                stream.sendall(f"{value} {name}\n".encode())
            except OSError:
                pass


def flood(host, port, rate):
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.connect((host, port))
    begin, sent = time.monotonic(), 0
    while True:
        while sent < (time.monotonic() - begin) * rate:
            try:
                out.send(b"0123456789")
            except OSError:
                pass
            sent += 1
        time.sleep(0.001)


def read(host, port, key):
    with socket.create_connection((host, port), timeout=0.5) as stream:
        stream.sendall(key)
        answer = stream.makefile().readline().split()
    if len(answer) != 2:
        raise OSError("no answer")
    return answer


def ask(host, port, seconds):
    end = time.monotonic() + seconds
    last, gap, times, before, failed = time.monotonic(), 0, {}, None, 0
    while (begin := time.monotonic()) < end:
        try:
            value, name = read(host, port, b"key")
        except OSError:
            failed += 1
            time.sleep(0.01)
            continue
        now = time.monotonic()
        if value != hashlib.pbkdf2_hmac("sha256", b"key", b"kv", 2000).hex():
            sys.exit("a wrong value")
        if before not in (None, name):
            print(f"moved from {before} to {name}: {now - last:.3f} s between two answers")
        gap, last, before = max(gap, now - last), now, name
        times.setdefault(name, []).append(now - begin)
        time.sleep(max(0, begin + 0.05 - now))
    for name, all_of in times.items():
        all_of.sort()
        print(f"{name}: {len(all_of)} answers, median {all_of[len(all_of) // 2] * 1000:.0f} ms, slowest {all_of[-1] * 1000:.0f} ms")
    print(f"longest time without an answer {gap:.3f} s, {failed} failures")


if __name__ == "__main__":
    words = sys.argv[2:]
    {
        "serve": lambda: serve(int(words[0])),
        "flood": lambda: flood(words[0], int(words[1]), int(words[2])),
        "ask": lambda: ask(words[0], int(words[1]), float(words[2])),
    }[sys.argv[1]]()

"""NATs: what comes through one, beside what RFC 3489 says of its type and the file of its time-outs and ports."""

import packets
from trial import Trial, Truth, node

TYPES = {"full-cone": {"same", "port", "other"}, "address-restricted": {"same", "port"}, "port-restricted": {"same"}, "symmetric": {"same"}}
# Sends from one socket to three endpoints, and prints all that comes from them.
INSIDE = """
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1.5)
for to in (("b", 9), ("b", 10), ("c", 9))[:COUNT]:
    s.sendto(b"hello", to)
    time.sleep(0.02)
try:
    while True:
        print(s.recv(100).decode(), flush=True)
except OSError:
    pass
"""
# Prints which endpoint each of two ports was reached from, and answers the first from both.
OUTSIDE = """
import select, socket
ports = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
for n, s in enumerate(ports):
    s.bind(("", 9 + n))
print("ready", flush=True)
while True:
    for s in select.select(ports, [], [])[0]:
        data, peer = s.recvfrom(100)
        print(s.getsockname()[1], *peer, flush=True)
        if ANSWER and s is ports[0]:
            open(PEER + ".part", "w").write(f"{peer[0]} {peer[1]}")
            __import__("os").rename(PEER + ".part", PEER)
            ports[0].sendto(b"same", peer)
            ports[1].sendto(b"port", peer)
"""
# Sends to that endpoint from another address.
OTHER = """
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9))
s.settimeout(0.01)
print("ready", flush=True)
asked = ANSWER
while True:
    if asked and os.path.exists(PEER):
        host, port = open(PEER).read().split()
        s.sendto(b"other", (host, int(port)))
        asked = False
    try:
        data, peer = s.recvfrom(100)
        print(9, *peer, flush=True)
    except OSError:
        pass
"""


def behind(nat, count, answer):
    """The text of a file with a node behind a NAT and two outside of it."""
    outside = "daemon: true\nready: log:ready"

    def code(text):
        return text.replace("COUNT", str(count)).replace("ANSWER", str(answer)).replace("PEER", '"FOLDER/peer"')

    return f"""
ipv6: false
nodes:
{node("a", code(INSIDE), keys="after: [b, c]")}{node("b", code(OUTSIDE), keys=outside)}{node("c", code(OTHER), keys=outside)}
routers:
  r: {{nat: {{{nat}}}, inside: a}}
  out:
links:
  - {{between: [a, r], latency: 1ms}}
  - {{between: [r, out], latency: 1ms}}
  - {{between: [b, out], latency: 1ms}}
  - {{between: [c, out], latency: 2ms}}
"""


def filtering(chance):
    """What three endpoints outside send to one that a node has opened: the NAT's type says which of them comes in."""
    kind = chance.choice(list(TYPES))
    with Trial(behind(f"type: {kind}", 1, True)) as trial:
        report = trial.finish()
        came = set(trial.output("a").split())
        return report, Truth(came != TYPES[kind], f"{kind}: {sorted(came)} came in")


def mapping(chance):
    """The external endpoints of one socket: one for all, or with a symmetric NAT one for each remote endpoint."""
    kind = chance.choice(list(TYPES))
    with Trial(behind(f"type: {kind}", 3, False)) as trial:
        report = trial.finish()
        rows = [line.split()[1:] for name in "bc" for line in trial.output(name).splitlines() if line != "ready"]
        ends = {tuple(row) for row in rows}
        right = len(rows) == 3 and len(ends) == (3 if kind == "symmetric" else 1)
        return report, Truth(not right, f"{kind}: {sorted(ends)}")


LIVES = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.sendto(b"x", ("b", 9))
try:
    print(s.recv(100).decode())
except OSError:
    print("nothing")
"""
ANSWERS = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9))
print("ready", flush=True)
data, peer = s.recvfrom(100)
begin = time.monotonic_ns()
time.sleep(int(sys.argv[1]) / 1e3)
s.sendto(b"answer", peer)
print((time.monotonic_ns() - begin) / 1e6, flush=True)
time.sleep(60)
"""


def time_out(chance):
    """An answer that comes about when a mapping of UDP ends: before, it comes in; after, it does not."""
    timeout = chance.randrange(300, 1500)
    wait = max(10, timeout + chance.choice([-1, 1]) * chance.randrange(20, 300))
    text = f"""
ipv6: false
nodes:
{node("a", LIVES, keys="after: [b]")}{node("b", ANSWERS, wait, keys="daemon: true" + chr(10) + "ready: log:ready")}
routers:
  r: {{nat: {{type: full-cone, udp-timeout: {timeout}ms}}, inside: a}}
links:
  - {{between: [a, r], latency: 1ms}}
  - {{between: [b, r], latency: 2ms}}
"""
    with Trial(text) as trial:
        report = trial.finish()
        came = trial.output("a").strip() == "answer"
        # The mapping is made 2 ms before b has the packet, and asked 2 ms after b has answered.
        idle = float(trial.output("b").split()[1]) + 4
        seen = f"answer after {idle:.1f} of {timeout} ms: {'came' if came else 'did not come'}"
        return report, Truth(None if abs(idle - timeout) < 5 else came != (idle < timeout), seen)


MANY = """
import socket
held = []
for n in range(60):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("", 30000 + n))
    s.sendto(b"x", ("b", 9))
    held.append(s)
"""
TAKE_MANY = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9))
print("ready", flush=True)
while True:
    print(s.recvfrom(100)[1][1], flush=True)
"""


def full_table(chance):
    """More sessions than a NAT has ports: as many as it has ports come through, each by a port of its own."""
    ports = chance.randrange(2, 25) * 2
    kind = chance.choice(list(TYPES))
    text = f"""
ipv6: false
nodes:
{node("a", MANY, keys="after: [b]")}{node("b", TAKE_MANY, keys="daemon: true" + chr(10) + "ready: log:ready")}
routers:
  r: {{nat: {{type: {kind}, ports: 20000-{20000 + ports - 1}}}, inside: a}}
links:
  - {{between: [a, r], latency: 1ms}}
  - {{between: [b, r], latency: 1ms}}
"""
    with Trial(text) as trial:
        report = trial.finish()
        # The last may be on their way when the sender ends; none is while 60 are asked and fewer can come.
        seen = [int(line) for line in trial.output("b").split() if line != "ready"]
        right = sorted(seen) == list(range(20000, 20000 + ports))
        return report, Truth(not right, f"{kind}: {len(seen)} came through {ports} ports, {len(set(seen))} of them different")


def probes(chance):
    """Probes through a NAT while the run's process stands still now and then."""
    links = "  - {between: [a, r], latency: 5ms}\n  - {between: [r, b], latency: 15ms}\n"
    text = packets.network(links=links) + "routers:\n  r: {nat: symmetric, inside: a}\n"
    with Trial(text) as trial:
        trial.wait_for_begin()
        if chance.random() < 0.5:
            trial.stop_for([trial.process.pid], chance.uniform(0.001, 0.2))
        report = trial.finish()
        return report, packets.truth(trial)


KINDS = [filtering, mapping, time_out, full_table, probes]
for one in KINDS:
    one.__name__ = f"nat_{one.__name__}"

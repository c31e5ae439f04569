"""The processor is taken from the emulation."""

import os
import sys
import time

import packets
from trial import Trial, Truth, node

BUSY = "while True: pass"
# Computes for a while and sleeps for a while, before all that is not of a real-time class.
BURSTS = """
import os, sys, time
on, off = float(sys.argv[1]), float(sys.argv[2])
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
except PermissionError:
    pass
while True:
    end = time.monotonic() + on
    while time.monotonic() < end:
        pass
    time.sleep(off)
"""


def measured(trial):
    report = trial.finish()
    return report, packets.truth(trial)


def nothing(_chance):
    """Nothing is done to it."""
    with Trial(packets.network()) as trial:
        return measured(trial)


def busy_beside(chance):
    """As many busy loops as processors, and up to ten more, of the same priority."""
    with Trial(packets.network()) as trial:
        for _ in range(os.cpu_count() + chance.randrange(10)):
            trial.beside([sys.executable, "-c", BUSY])
        return measured(trial)


def busy_before_all(chance):
    """Processes of a real-time class take every processor for 2 to 60 ms, again and again."""
    on = chance.uniform(0.002, 0.06)
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        for _ in range(os.cpu_count()):
            trial.beside([sys.executable, "-c", BURSTS, str(on), str(chance.uniform(2, 20) * on)])
        return measured(trial)


def busy_before_all_once(chance):
    """The same, once, for 3 to 40 ms: a few packets of a thousand are late, or none."""
    on = chance.uniform(0.003, 0.04)
    with Trial(packets.network()) as trial:
        trial.wait_for_begin()
        time.sleep(chance.uniform(0.2, 1.5))
        for _ in range(os.cpu_count()):
            trial.beside([sys.executable, "-c", BURSTS, str(on), "60"])
        return measured(trial)


def busy_nodes(_chance):
    """The programs of the network itself compute on every processor."""
    nodes = "".join(f"  busy-{n}: {{daemon: true, run: [{sys.executable}, -c, '{BUSY}']}}\n" for n in range(4))
    links = "  - {between: [a, b], latency: 20ms}\n" + "".join(f"  - {{between: [busy-{n}, b], latency: 1ms}}\n" for n in range(4))
    with Trial(packets.network(nodes=nodes, links=links)) as trial:
        return measured(trial)


def flood_beside(_chance):
    """Another pair of nodes sends small datagrams as fast as it can."""
    code = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.connect((\"d\", 9))\nwhile True:\n    try:\n        s.send(b\"x\")\n    except OSError:\n        pass\n"
    nodes = node("c", code, keys="daemon: true") + "  d: {}\n"
    links = "  - {between: [a, b], latency: 20ms}\n  - {between: [c, d], latency: 1ms}\n"
    with Trial(packets.network(nodes=nodes, links=links)) as trial:
        return measured(trial)


# Numbered datagrams, every fourth in two fragments: sends them, or prints how many came, and how many after a later one.
NUMBERS = """
import socket, sys, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
if sys.argv[1:]:
    sock.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: IP_PMTUDISC_DONT
    sock.sendto(b"", (sys.argv[1], 9))
    sock.recv(1)
    for number in range(4000):
        sock.sendto(number.to_bytes(4, "big") + bytes(1800 if number % 4 == 1 else 100), (sys.argv[1], 9))
        if number % 4 == 3:
            time.sleep(0.0005)
else:
    sock.bind(("", 9))
    print("ready", flush=True)
    data, sender = sock.recvfrom(1)
    sock.sendto(b"", sender)
    sock.settimeout(2)
    last, count, overtaken = -1, 0, 0
    try:
        while last < 3999:
            number = int.from_bytes(sock.recv(2000)[:4], "big")
            count, overtaken, last = count + 1, overtaken + (number < last), max(last, number)
    except TimeoutError:
        pass
    print(count, overtaken, flush=True)
"""


def fragments_beside_busy(chance):
    """Whole and cut datagrams of one socket beside busy loops: a link keeps their order."""
    nodes = node("a", NUMBERS, "b", keys="after: [b]") + node("b", NUMBERS, keys="ready: log:ready")
    # Here order is measured, not lateness.
    with Trial(f"nodes:\n{nodes}links:\n  - {{between: [a, b], latency: 2ms}}\n", "--max-lateness", "1s") as trial:
        for _ in range(chance.randrange(1, 4)):
            trial.beside([sys.executable, "-c", BUSY])
        report = trial.finish()
        count, overtaken = (int(word) for word in trial.output("b").split()[-2:])
        return report, Truth(overtaken > 0, f"{overtaken} of {count} datagrams came after a later one")


KINDS = [nothing, busy_beside, busy_before_all, busy_before_all_once, busy_nodes, flood_beside, fragments_beside_busy]

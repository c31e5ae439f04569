"""Losses and delays inside of nodes, which no link of the file has asked for."""

import dataclasses
import shutil
import sys

import packets
from trial import Trial, Truth, node

# Runs a command when the run has begun, beside the program that sends.
BEFORE = """
import subprocess, sys
subprocess.run(sys.argv[2], shell=True, check=False)
sys.exit(subprocess.call([sys.executable, *sys.argv[3:]]))
"""


def disturbed_at(place, command, known=None):
    """Probes, where one of the two nodes runs this command, as root of the node, before its part of the work. `known`: whether the
    command disturbs them by what it is, where the stamps cannot show it (they are made after the node's own queue)."""
    text = packets.network()
    old = next(line for line in text.splitlines() if "send, b" in line) if place == "a" else \
        next(line for line in text.splitlines() if "receive," in line)
    words = old.strip().removeprefix("run: [").removesuffix("]")
    new = f"    user: root\n    run: [{sys.executable}, FOLDER/before.py, \"\", {command!r}, {words.split(', ', 1)[1]}]"
    with Trial(text.replace(old, new)) as trial:
        (trial.folder / "before.py").write_text(BEFORE)
        report = trial.finish()
        truth = packets.truth(trial, count=1000)
        # What a node does to its own packets is its own: a notice that names it is enough.
        return report, dataclasses.replace(truth, broken=truth.broken or known, notice=f"node {place} has")


def own_discipline(_chance):
    """A node limits its own device with a token bucket that drops."""
    tc = shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin")
    return disturbed_at("a", f"{tc} qdisc add dev eth0 root tbf rate 400kbit burst 1600 limit 3000")


def own_delay(_chance):
    """The same bucket with a long queue: nothing is lost, all is late."""
    tc = shutil.which("tc", path="/usr/sbin:/sbin:/usr/bin")
    return disturbed_at("a", f"{tc} qdisc add dev eth0 root tbf rate 700kbit burst 1600 limit 1000000", known=True)


def own_filter(_chance):
    """A node drops some of what comes to it by its own packet filter."""
    nft = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin")
    rule = f"{nft} add table ip t; {nft} 'add chain ip t c {{ type filter hook input priority 0; }}'; " \
        f"{nft} add rule ip t c numgen random mod 10 0 drop"
    return disturbed_at("b", rule)


def little_memory(_chance):
    """Queues need more than `--packet-memory` has: packets are lost that no link has dropped."""
    links = "  - {between: [a, b], latency: 300ms, rate: 100mbit}\n"
    with Trial(packets.network(count=4000, spacing_ns=150_000, size=1500, links=links),
               "--packet-memory", "1MB") as trial:
        report = trial.finish()
        return report, packets.truth(trial, latency_ms=300 + 1538 * 8 / 100e3)


def sockets_at_the_end(_chance):
    """Two thousand connections are open when the run ends: what the kernel drops of their resets is after the end."""
    code = OPEN_MANY
    text = f"""
ipv6: false
defaults: {{node: {{open-files: 10000}}}}
nodes:
{node("a", code, keys="after: [b]")}{node("b", TAKE_CONNECTIONS, keys="daemon: true" + chr(10) + "ready: log:ready")}
links: [{{between: [a, b], latency: 1ms}}]
"""
    with Trial(text) as trial:
        report = trial.finish()
        # What it says of the sending itself is the business of other kinds.
        dropped = report is not None and any("dropped" in doubt for doubt in report["verdict"]["unfaithful"])
        return report, Truth(False if dropped else None, "nothing was asked after the end")


OPEN_MANY = """
import socket, time
held = []
for n in range(2000):
    held.append(socket.create_connection(("b", 9)))
    if n % 20 == 0:
        time.sleep(0.01)
time.sleep(0.2)
"""
TAKE_CONNECTIONS = """
import socket
s = socket.create_server(("", 9), backlog=4000)
print("ready", flush=True)
held = []
while True:
    held.append(s.accept())
"""

KINDS = [own_discipline, own_delay, own_filter, little_memory, sockets_at_the_end]

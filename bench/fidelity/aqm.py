#!/usr/bin/env python3
"""Windtunnel's disciplines beside the kernel's own, same load and network: aqm.py --out DIR
[--ours] [DISCIPLINE...]

10 Mbit/s with a round trip of 20 ms, 12 s each, ROUNDS times (default 3): UDP at 1.2 times the
rate, one CUBIC stream, and four of them beside a probe of 50 datagrams a second, whose delay is
that of the queue. The kernel has its discipline twice: as the root of a device that takes one
packet at a time at this rate (`line`, networks.Serial), and as the child of an HTB class with
bursts of one packet (`tc`; larger ones refill the gap after each drop, and with these HTB loses
what it could not send in time). Its delay is netem's on the way back; so it needs a kernel that has
all these, such as the guest's; --ours leaves it out. All are also simulated on an ideal serial line
(serial.py). Writes DIR/aqm.json, a row for each round.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

import compare
import networks
import probe
import serial

HERE = Path(__file__).resolve().parent
TRAFFIC = HERE.parent.parent / "experiments/splaynet/traffic.py"
SECONDS = 12
# The same parameters for both: name, tc's words, ours. tc makes a weight of 1/32 out of this burst.
DISCIPLINES = {
    "drop-tail": ("pfifo limit 100", "drop-tail"),
    "codel": (
        "codel limit 1000 target 5ms interval 100ms noecn",
        "{codel: {target: 5ms, interval: 100ms, ecn: false}}",
    ),
    "fq-codel": (
        "fq_codel limit 1000 flows 1024 target 5ms interval 100ms quantum 1514 noecn",
        "{fq-codel: {target: 5ms, interval: 100ms, ecn: false}}",
    ),
    "pie": (
        "pie limit 1000 target 15ms tupdate 15ms noecn",
        "{pie: {target: 15ms, update: 15ms, derandomise: true, ecn: false}}",
    ),
    "red": (
        "red limit 1500000 min 30000 max 90000 avpkt 1000 burst 50 probability 0.1 "
        "bandwidth 10mbit",
        "{red: {min: 30KB, max: 90KB, probability: 10%, weight: 3.125%, ecn: false}}",
    ),
}
LOADS = ("udp at 1.2", "one stream", "four streams")


def results_folder(words, usage):
    """Takes `--out DIR` out of the words."""
    if "--out" not in words or "--help" in words:
        sys.exit(usage)
    at = words.index("--out")
    folder = Path(words[at + 1])
    del words[at : at + 2]
    return folder


def main(words):
    folder = results_folder(words, __doc__)
    tools = ("windtunnel",) if "--ours" in words else ("windtunnel", "line", "tc")
    rounds = int(os.environ.get("ROUNDS", "3"))
    words = [word for word in words if word != "--ours"]
    for word in words:
        if word not in DISCIPLINES:
            sys.exit(f"no discipline `{word}`\nhint: one of {', '.join(DISCIPLINES)}")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for name in words or DISCIPLINES:
        for load in LOADS:
            for tool in (*(tool for tool in tools for _ in range(rounds)), "serial line"):
                print(f"{tool}: {name}, {load}", file=sys.stderr, flush=True)
                row = {"discipline": name, "load": load, "tool": tool}
                try:
                    row |= (
                        serial.figures(name, load, SECONDS)
                        if tool == "serial line"
                        else ask(tool, name, load)
                    )
                except networks.Failed as failure:
                    row["refused"] = str(failure)
                rows.append(row)
                (folder / "aqm.json").write_text(json.dumps(rows, indent=1) + "\n")


def network(tool, name):
    kernel, ours = DISCIPLINES[name]
    if tool == "line":
        # RED counts bytes: those of the line, as ours does.
        return networks.Serial(
            f"stab overhead 38 linklayer ethernet {kernel}" if name == "red" else kernel,
            "netem limit 100000 delay 20ms",
        )
    if tool == "tc":
        return networks.Kernel(
            [
                "htb default 1",
                "class htb rate 10mbit ceil 10mbit burst 1540 cburst 1540 overhead 24",
                kernel,
            ],
            "netem limit 100000 delay 20ms",
        )
    return networks.Windtunnel(
        (
            f"rate: 10mbit, queue: 1000p, discipline: {ours}"
            if name != "drop-tail"
            else "rate: 10mbit, queue: 100p"
        ),
        "latency: 20ms",
    )


def ask(tool, name, load):
    python, prober, traffic = networks.PYTHON, str(HERE / "probe.py"), str(TRAFFIC)
    with tempfile.TemporaryDirectory(prefix="wt-aqm-") as scratch, network(tool, name) as net:
        file = Path(scratch) / "received"
        if load.startswith("udp"):
            count = round(SECONDS * 1.2 * 10e6 / 8 / 1538)
            net.run(
                [
                    [
                        python,
                        prober,
                        "send",
                        "HOST",
                        "5005",
                        str(count),
                        str(round(SECONDS * 1e9 / count)),
                        "1500",
                    ]
                ],
                [python, prober, "receive", "5005", str(file)],
            )
            received = probe.read(file)
            # The first third is the discipline's start.
            late = [(at - sent) / 1e6 for number, sent, at, _ in received if number > count / 3]
            span = received[-1][2] - received[0][2]
            got = (len(received) - 1) * 1472 * 8e3 / span
            lost = 100 * (
                1
                - sum(1 for number, *_ in received if number > count / 3)
                / (count - int(count / 3) - 1)
            )
        else:
            streams = 1 if load.startswith("one") else 4
            said = net.run(
                [[python, traffic, "stream", "HOST", "5000", f"{SECONDS}s"]] * streams
                + [[python, prober, "send", "HOST", "5005", str(SECONDS * 50), "20000000", "100"]],
                [python, str(HERE / "both.py"), traffic, str(streams), prober, str(file)],
            )
            received = probe.read(file)
            late = [
                (at - sent) / 1e6 for number, sent, at, _ in received if number > SECONDS * 50 / 3
            ]
            finished = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
            got = goodput(finished)
            lost = None
        counted = net.counters()
    dropped, sent, marked = counts(tool, counted)
    return {
        "goodput": got,
        "dropped": lost if lost is not None else 100 * dropped / max(1, sent),
        "marked": marked,
        "p50": compare.percentile(late, 0.5),
        "p95": compare.percentile(late, 0.95),
    }


def goodput(streams):
    """All streams together, from the third second to the last but one."""
    size = streams[0]["bin_ns"]
    first = max(stream["first_ns"] for stream in streams) // size + 20
    last = min(stream["last_ns"] for stream in streams) // size - 10
    total = sum(
        amount for stream in streams for index, amount in stream["bins"] if first <= index < last
    )
    return total * 8e3 / ((last - first) * size)


def counts(tool, counted):
    """Dropped, offered and marked packets: ours from the run folder, the kernel's from `tc -s`."""
    if tool == "windtunnel":
        return (
            sum(counted["dropped_packets"].values()),
            counted["offered_packets"],
            counted["marked_packets"],
        )
    child = next((qdisc for qdisc in counted if qdisc.get("handle") == "10:"), counted[0])
    drops = child.get("drops", 0)
    # A super-packet that the kernel drops counts once; so do the packets that it sent.
    return (
        drops,
        child.get("packets", 0) + drops,
        child.get("ecn_mark", child.get("marked", 0)) or 0,
    )


if __name__ == "__main__":
    main(sys.argv[1:])

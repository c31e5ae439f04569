#!/usr/bin/env python3
"""RED of Windtunnel beside Linux's as the root of a serial line (networks.Serial): red.py --out DIR
[CASE...]

10 Mbit/s, the same thresholds, weight and probability for both, ECN on or off. Cases:

  idle   900 ECN-capable datagrams at 1.15 times the rate; a second later 100 echo requests, one
         each 100 ms, over the idle link
  load   datagrams at 1.1, 1.2 and 1.5 times the rate for 8 s; the last two thirds count
  reno   one Reno stream for 20 s with a round trip of 20 ms; the last 15 s count

Each is done ROUNDS times (default 3). Needs root and a kernel with `red`, `slip` and `tun`. Writes
DIR/red.json with all rounds.
"""

import json
import os
import re
import sys
import tempfile
from pathlib import Path

import aqm
import compare
import networks
import probe

HERE = Path(__file__).resolve().parent
# What `discipline: red` is at 10 Mbit/s: a queue of 100 packets of 1538 bytes, a quarter of it and
# a twelfth. tc makes a weight of 1/512 out of this burst.
KERNEL = (
    "stab overhead 38 linklayer ethernet red limit 153800 min 12816 max 38450 avpkt 1000 burst 100 "
    "probability 0.02 bandwidth 10mbit{ecn}"
)
OURS = (
    "rate: 10mbit, queue: 153800B, discipline: {{red: {{min: 12816B, max: 38450B, "
    "probability: 2%, weight: 0.1953125%, ecn: {ecn}}}}}"
)
WIRE_NS = 1538 * 800
PROBE = [networks.PYTHON, str(HERE / "probe.py")]
LOADS = (1.1, 1.2, 1.5)


def main(words):
    folder = aqm.results_folder(words, __doc__)
    wanted = words or list(CASES)
    unknown = [word for word in wanted if word not in CASES]
    if unknown:
        sys.exit(f"no case `{unknown[0]}`\nhint: one of {', '.join(CASES)}")
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for round_ in range(int(os.environ.get("ROUNDS", "3"))):
        for case in wanted:
            for tool in ("windtunnel", "line"):
                for row in CASES[case](tool):
                    rows.append({"round": round_, "tool": tool, **row})
                    print(rows[-1], file=sys.stderr, flush=True)
                    (folder / "red.json").write_text(json.dumps(rows, indent=1) + "\n")


def network(tool, ecn, back=False):
    if tool == "windtunnel":
        return networks.Windtunnel(
            OURS.format(ecn="true" if ecn else "false"), "latency: 20ms" if back else None
        )
    return networks.Serial(
        KERNEL.format(ecn=" ecn" if ecn else ""), "netem limit 100000 delay 20ms" if back else None
    )


def idle(tool):
    with tempfile.TemporaryDirectory(prefix="wt-red-") as scratch, network(tool, True) as net:
        file, pings = Path(scratch) / "received", Path(scratch) / "pings"
        flood = " ".join(
            [*PROBE, "send", "HOST", "5005", "900", str(round(WIRE_NS / 1.15)), "1500", "2"]
        )
        net.run(
            [["sh", "-c", f"{flood}; sleep 1; ping -q -c 100 -i 0.1 -W 1 HOST >{pings}"]],
            [*PROBE, "receive", "5005", str(file)],
        )
        received = probe.read(file)
        back = int(re.search(r"(\d+) received", pings.read_text())[1])
    yield {
        "case": "idle",
        "ecn": True,
        "received": len(received),
        "marked": sum(ecn == 3 for *_, ecn in received),
        "pings": back,
    }


def load(tool):
    for ecn in (False, True):
        for times in LOADS:
            yield {"case": f"load {times}", "ecn": ecn, **overload(tool, ecn, times)}


def overload(tool, ecn, times):
    count = round(8 * times * 1e9 / WIRE_NS)
    with tempfile.TemporaryDirectory(prefix="wt-red-") as scratch, network(tool, ecn) as net:
        file = Path(scratch) / "received"
        net.run(
            [
                [
                    *PROBE,
                    "send",
                    "HOST",
                    "5005",
                    str(count),
                    str(round(WIRE_NS / times)),
                    "1500",
                    "2" if ecn else "0",
                ]
            ],
            [*PROBE, "receive", "5005", str(file)],
        )
        received = probe.read(file)
    seen = [row for row in received if row[0] >= count // 3]
    late = [(at - sent) / 1e6 for _, sent, at, _ in seen]
    # The last packets may still wait when earlier ones were dropped: losses are found by
    # number.
    sent_ns = (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])
    return {
        "load": WIRE_NS / sent_ns,
        "goodput": (len(seen) - 1) * 1472 * 8e3 / (seen[-1][2] - seen[0][2]),
        "dropped": 100 * (1 - len(seen) / (count - count // 3)),
        "marked": 100 * sum(row[3] == 3 for row in seen) / len(seen),
        "p50": compare.percentile(late, 0.5),
        "p95": compare.percentile(late, 0.95),
    }


def reno(tool):
    for ecn in (False, True):
        asked = ["sh", "-c", f'echo {1 if ecn else 0} >/proc/sys/net/ipv4/tcp_ecn; exec "$@"', "sh"]
        traffic = [networks.PYTHON, str(aqm.TRAFFIC)]
        with network(tool, ecn, back=True) as net:
            said = net.run(
                [
                    [
                        *asked,
                        "env",
                        "TRAFFIC_CONTROL=reno",
                        *traffic,
                        "stream",
                        "HOST",
                        "5000",
                        "20s",
                    ]
                ],
                [
                    *asked,
                    networks.PYTHON,
                    str(HERE / "ready.py"),
                    str(aqm.TRAFFIC),
                    "sink",
                    "5000",
                    "1",
                ],
            )
            counted = net.counters()
        stream = next(json.loads(line) for line in said.splitlines() if line.startswith("{"))
        dropped, _, marked = aqm.counts(tool, counted)
        yield {
            "case": "reno",
            "ecn": ecn,
            **goodput(stream),
            "dropped_packets": dropped,
            "marked_packets": marked,
        }


def goodput(stream):
    """Of the last 15 of 20 seconds, and that of the worst of them."""
    size, bins = stream["bin_ns"], dict(map(tuple, stream["bins"]))
    first, per = stream["first_ns"] // size + 5_000_000_000 // size, 1_000_000_000 // size
    seconds = [
        sum(bins.get(index, 0) for index in range(start, start + per)) * 8e-6
        for start in range(first, first + 15 * per - per, per)
    ]
    return {"goodput": sum(seconds) / len(seconds), "worst_second": min(seconds)}


CASES = {"idle": idle, "load": load, "reno": reno}

if __name__ == "__main__":
    main(sys.argv[1:])

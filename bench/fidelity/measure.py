#!/usr/bin/env python3
"""Runs cases over tools and writes the samples: measure.py --out DIR TOOL... [-- CASE...]

A tool is netem, tbf, htb (with -trains: with super-packets), windtunnel or rattan; `tc` is the
plain veth pair, the floor of all of them. DIR gets a file TOOL.CASE.json with the samples for each.
Refusals of a tool are written there too.
"""

import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import cases
import networks
import probe

HERE = Path(__file__).resolve().parent
TRAFFIC = HERE.parent.parent / "experiments/splaynet/traffic.py"


def main(words):
    if not words or "--help" in words:
        sys.exit(__doc__)
    at = words.index("--out")
    folder = Path(words[at + 1])
    del words[at : at + 2]
    tools, names = (
        (words[: words.index("--")], words[words.index("--") + 1 :])
        if "--" in words
        else (words, [])
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "machine.txt").write_text(machine() + "\n")
    for case in cases.named(names):
        for tool in tools:
            if tool in case.settings:
                ask(tool, case, folder)


def machine():
    """The machine of the measurements, in a line."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "",
    )
    processors = f"{os.cpu_count()} × {model or platform.machine()}"
    return f"{processors}, Linux {platform.release()}, Python {platform.python_version()}"


def ask(tool, case, folder):
    print(f"{tool}: {case.name}", file=sys.stderr, flush=True)
    try:
        seen = (stream if case.kind == "goodput" else datagrams)(tool, case)
    except networks.Failed as failure:
        print(f"  refused: {failure}", file=sys.stderr)
        seen = {"refused": str(failure)}
    (folder / f"{tool}.{case.name}.json").write_text(json.dumps(seen) + "\n")


def datagrams(tool, case):
    """Numbers, and times of sending and arrival after the first, in nanoseconds."""
    with tempfile.TemporaryDirectory(prefix="wt-received-") as scratch:
        file = Path(scratch) / "received"
        with networks.TOOLS[tool](case.settings[tool]) as network:
            network.run(
                [
                    [
                        networks.PYTHON,
                        str(HERE / "probe.py"),
                        "send",
                        "HOST",
                        "5005",
                        str(case.count),
                        str(case.step_ns),
                        str(case.size),
                    ]
                ],
                [networks.PYTHON, str(HERE / "probe.py"), "receive", "5005", str(file)],
            )
        if not file.exists():
            raise networks.Failed("nothing was received")
        lines = probe.read(file)
    if not lines:
        raise networks.Failed("nothing was received")
    first = min(sent for _, sent, *_ in lines)
    return {
        "count": case.count,
        "received": [(number, sent - first, at - first) for number, sent, at, _ in lines],
    }


def stream(tool, case):
    """What one TCP stream brought, in bins."""
    with networks.TOOLS[tool](case.settings[tool]) as network:
        said = network.run(
            [[networks.PYTHON, str(TRAFFIC), "stream", "HOST", "5000", f"{case.count}s"]],
            [networks.PYTHON, str(HERE / "ready.py"), str(TRAFFIC), "sink", "5000", "1"],
        )
    for line in said.splitlines():
        if line.startswith("{"):
            return json.loads(line)
    raise networks.Failed(f"the stream did not end: {said[-200:]}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Runs over several machines: underlays that are not symmetric or lose packets, machines that pause, processors that are busy."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import packets
from trial import PROBE, Truth, deliver

HERE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HERE.parent.parent / "bench"))
import machines as bench  # noqa: E402

LATENCY_MS = 30
# One that an ordinary user can run, too: others may lie in the folder of root.
PYTHON = next(path for path in ("/usr/bin/python3", sys.executable) if os.path.exists(path))


class Behind(bench.Machines):
    """Two machines, the second behind a relay with these delays from and to it."""

    def __init__(self, from_ms, to_ms, loss=0.0):
        self.delays = [str(from_ms), str(to_ms), str(loss)]
        super().__init__(2)

    def plug_in(self, at):
        pid = super().plug_in(at)
        if at == 1:
            for words in ("link set port-1 nomaster", "link add inner type veth peer name outer",
                          "link set outer master switch up", "link set inner up promisc on", "link set port-1 promisc on"):
                self.ip(self.switch, words)
            relay = subprocess.Popen([*self.enter(self.switch), sys.executable, HERE / "relay.py", "port-1", "inner", *self.delays],
                                     stdin=subprocess.DEVNULL)
            self.processes.append(relay)
        return pid


SCENARIO = f"""
ipv6: false
model: paths
nodes:
  a:
    after: [b]
    pin: m0
    run: [{PYTHON}, FOLDER/probe.py, send, b, "9", "1000", "2000000", "200", FOLDER/sent]
  b:
    ready: log:ready
    pin: m1
    run: [{PYTHON}, FOLDER/probe.py, receive, "9", FOLDER/came]
links:
  - {{between: [a, b], latency: {LATENCY_MS}ms}}
"""


class Folder:
    """What `packets.truth` looks at."""

    def __init__(self, folder):
        self.folder = folder


def over(from_ms, to_ms, loss=0.0, provoke=None, swap=False):
    with Behind(from_ms, to_ms, loss) as machines:
        shared = machines.folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        shutil.copy(PROBE, shared)
        text = SCENARIO.replace("FOLDER", str(shared))
        if swap:
            text = text.replace("pin: m0", "pin: mX").replace("pin: m1", "pin: m0").replace("pin: mX", "pin: m1")
        folder, process = machines.begin(text, "--quiet")
        if provoke:
            provoke(machines, folder)
        said, error = process.communicate()
        try:
            report = json.loads((folder / "run.json").read_text())
        except (OSError, json.JSONDecodeError):
            return None, Truth(None, f"no report: {error.strip() or said}")
        return report, packets.truth(Folder(shared), latency_ms=LATENCY_MS, early_ms=1.02)


def symmetric_underlay(chance):
    """Two machines with the same delay both ways."""
    delay = chance.uniform(0, 8)
    return over(delay, delay, swap=chance.random() < 0.5)


def asymmetric_underlay(chance):
    """The underlay takes 4 to 20 ms one way, and nothing the other."""
    delays = [chance.uniform(4, 20), 0]
    chance.shuffle(delays)
    return over(*delays, swap=chance.random() < 0.5)


def lossy_underlay(chance):
    """The underlay loses 0.5 to 3 % of its packets, which the file does not ask for."""
    return over(0, 0, loss=chance.uniform(0.005, 0.03))


def one_machine_pauses(chance):
    """All of one machine's processes are stopped for 0.05 to 1 s while probes are under way."""

    def pause(machines, folder):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            if (folder / "events.jsonl").exists() and (folder / "events.jsonl").stat().st_size:
                break
            time.sleep(0.01)
        time.sleep(chance.uniform(0.5, 1.2))
        stopped = descendants(machines.agents[chance.randrange(2)].pid)
        for process in stopped:
            deliver(process, signal.SIGSTOP)
        time.sleep(chance.uniform(0.05, 1))
        for process in stopped:
            deliver(process, signal.SIGCONT)

    return over(0, 0, provoke=pause)


def descendants(process):
    found = [process]
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += descendants(int(child))
    return found


KINDS = [symmetric_underlay, asymmetric_underlay, lossy_underlay, one_machine_pauses]

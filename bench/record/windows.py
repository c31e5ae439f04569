"""Recording switched on and off within one run, window by window.

Two runs of the same stream differ by a third on a machine of two processors, because the scheduler places its three busy threads
otherwise. Windows of one run differ less, and there can be hundreds. Each window with recording is compared with the mean
of the windows without it before and after.
"""
import csv
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import lab

# After a change: not counted. Loading the kernel layer's programs is over when `record start` returns.
SETTLE = 0.2


class Live:
    """A run that stands by to record, while it goes on."""

    def __init__(self, scenario):
        self.folder = tempfile.TemporaryDirectory(prefix="wt-bench-")
        self.out = Path(self.folder.name, "run")
        file = Path(self.folder.name, "net.yaml")
        file.write_text("record: standby\n" + scenario)
        self.process = subprocess.Popen([lab.program(), "run", file, "--out", self.out, "--quiet", "--max-lateness", "1s"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        before = elapsed = None
        while elapsed is None:
            if self.process.poll() is not None:
                sys.exit(f"the scenario did not run:\n{self.process.stderr.read()}")
            time.sleep(0.05)
            before = time.monotonic()
            links = subprocess.run([lab.program(), "links", "--json", "--run", self.out], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, check=False)
            elapsed = json.loads(links.stdout)["elapsed_ns"] / 1e9 if links.returncode == 0 else None
        # Between the clock of this program and that of the run: half of the call is the error.
        self.began = (before + time.monotonic()) / 2 - elapsed

    def command(self, *words):
        return subprocess.run([lab.program(), *words, "--run", self.out], stdout=subprocess.PIPE, check=True, text=True).stdout

    def exec(self, node, *argv):
        """Starts a program in a node, until `end` is called with it."""
        return subprocess.Popen([lab.program(), "exec", "--run", self.out, node, "--", *argv],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def window(self, seconds):
        """The times, on the run's clock, of a window that begins when a change has settled."""
        time.sleep(SETTLE)
        first = time.monotonic() - self.began
        time.sleep(seconds)
        return first, time.monotonic() - self.began

    def end(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()

    def delivered(self, link, direction):
        """Times in seconds and bytes since the last row."""
        with open(self.out / "links.csv", encoding="utf-8") as file:
            return [(float(row["time_s"]), int(row["delivered_bytes"])) for row in csv.DictReader(file)
                    if (row["link"], row["direction"]) == (link, direction)]


def rate(rows, first, last):
    """Mbit/s of the rows that lie within a window."""
    inside = [(now - then, size) for (then, _), (now, size) in zip(rows, rows[1:]) if then >= first and now <= last]
    return sum(size for _, size in inside) * 8 / 1e6 / sum(span for span, _ in inside)


def alternate(live, changes, count, seconds, warm_up):
    """Windows without, with the first change, without, with the second ...: names with their times."""
    windows = []
    time.sleep(warm_up)
    for _ in range(count):
        for name, (begin, end) in changes.items():
            windows.append((None, live.window(seconds)))
            state = begin(live)
            windows.append((name, live.window(seconds)))
            end(live, state)
    windows.append((None, live.window(seconds)))
    return windows


def losses(scenario, link, direction, changes, count, seconds=0.6, warm_up=1.0):
    """By change: its rates in Mbit/s and the per cent lost against the windows beside it; and all rates without."""
    live = Live(scenario)
    try:
        windows = alternate(live, changes, count, seconds, warm_up)
    finally:
        live.end()
    rows = live.delivered(link, direction)
    rates = [(name, rate(rows, *times)) for name, times in windows]
    found = {name: ([], []) for name in changes}
    for index, (name, with_) in enumerate(rates):
        if name is not None:
            without = (rates[index - 1][1] + rates[index + 1][1]) / 2
            found[name][0].append(with_)
            found[name][1].append(100 * (1 - with_ / without))
    return found, [without for name, without in rates if name is None]


def interval(values):
    """The mean and the half width of its 95 % interval."""
    return f"{statistics.mean(values):.2f} ± {1.96 * statistics.stdev(values) / len(values) ** 0.5:.2f}"


def recording(layers, *options):
    """A change: record these layers; `options`: further ones of `record start`."""
    return (lambda live: live.command("record", "start", "--layers", layers, *options),
            lambda live, _: live.command("record", "stop"))


def tcpdump(node):
    """A change: tcpdump writes what comes by in a node, as in the paper's Table 1."""
    def begin(live):
        dump = Path(live.folder.name, "dump.pcap")
        return live.exec(node, "tcpdump", "-Z", "root", "-q", "-i", "eth0", "-w", dump, "-s", "68")

    def end(_, process):
        process.send_signal(signal.SIGINT)
        process.wait()
    return begin, end

"""What the benches share: running a scenario and printing a row."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def program():
    """The windtunnel that is measured: WINDTUNNEL, else the release build."""
    path = Path(os.environ.get("WINDTUNNEL", ROOT / "target/release/windtunnel"))
    if not path.exists():
        sys.exit(f"no {path}\nhint: cargo build --release, or set WINDTUNNEL")
    return str(path)


class Run:
    """A run of a scenario given as text: its folder is removed with the object. `user`: the number of the user who runs it."""

    def __init__(self, scenario, *options, user=None):
        self.folder = Path(tempfile.mkdtemp(prefix="wt-bench-"))
        file = self.folder / "net.yaml"
        file.write_text(scenario)
        switch = []
        if user is not None:
            os.chown(self.folder, user, user)
            switch = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        done = subprocess.run([*switch, program(), "run", str(file), "--out", str(self.folder / "run"), "--quiet", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.verdict = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
        if not (self.folder / "run/run.json").exists():
            shutil.rmtree(self.folder)
            sys.exit(f"the scenario did not run:\n{done.stderr}")
        self.report = json.loads((self.folder / "run/run.json").read_text())
        if not self.report["verdict"]["faithful"]:
            print(f"note: {self.verdict.rsplit(' (', 1)[0]}", file=sys.stderr)

    def output(self, node, number=None):
        """What a node's program wrote."""
        name = "stdout" if number is None else f"stdout.{number}"
        return (self.folder / "run/nodes" / node / name).read_text()

    def link(self, name, direction):
        return next(link for link in self.report["links"] if (link["link"], link["direction"]) == (name, direction))

    def rows(self):
        return (self.folder / "run/links.csv").read_text().splitlines()

    def __del__(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def node(name, code, words=(), more=""):
    """A node of a scenario that runs Python code with these arguments; `more`: its other keys, below four spaces."""
    text = "\n".join("        " + line for line in code.strip("\n").splitlines())
    arguments = "".join(f"      - \"{word}\"\n" for word in words)
    return f"  {name}:\n    {more}\n    run:\n      - {sys.executable}\n      - -c\n      - |\n{text}\n{arguments}"


def busy_seconds():
    """Processor time of the whole machine since some moment, to the microsecond; None: the kernel does not say.

    It is the time in which no processor was idle. `/proc/stat` counts ticks of the clock, which miss what happens between.
    """
    idle = [int(path.read_text()) for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpuidle/state*/time")]
    return time.monotonic() * os.cpu_count() - sum(idle) / 1e6 if idle else None


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]


def spread(values, digits=2):
    """Median, and least to greatest."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def row(name, baseline, ours, ratio):
    print(f"{name}\t{baseline}\t{ours}\t{ratio}", flush=True)

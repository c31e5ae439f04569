"""One run of windtunnel that something is done to, and what is known of it beside its verdict."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROBE = HERE / "probe.py"


@dataclass
class Truth:
    """What was seen by something that is not windtunnel.

    `broken`: True: the run was not what the file asks; False: it was; None: what was seen lies within the error
    of the measurement, and either verdict is right.
    """

    broken: bool | None
    seen: str
    # Where a notice is enough, because the fault is inside of a node: what it must name.
    notice: str | None = None


def deliver(process, number):
    """A signal to a process that may have ended."""
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


class Trial:
    """A scenario that runs: `with Trial(text) as trial`. The folder and all that it started end with it."""

    def __init__(self, scenario, *options, folder=None):
        self.folder = Path(folder or tempfile.mkdtemp(prefix="wt-verdict-"))
        self.folder.chmod(0o755)
        self.run = self.folder / "run"
        self.file = self.folder / "net.yaml"
        self.file.write_text(scenario.replace("FOLDER", str(self.folder)))
        self.options, self.process, self.others = options, None, []
        # Variables of the program beside those of the environment.
        self.environment = {}
        self.kept = False

    def __enter__(self):
        command = [os.environ["WINDTUNNEL"], "run", str(self.file), "--out", str(self.run), "--quiet", *self.options]
        self.log = open(self.folder / "log", "w", encoding="utf-8")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, cwd=self.folder,
                                        env={**os.environ, **self.environment})
        return self

    def __exit__(self, *_):
        for other in self.others:
            other.kill()
            other.wait()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.log.close()
        if not self.kept:
            shutil.rmtree(self.folder, ignore_errors=True)

    def again(self):
        """The same scenario once more, in the same folder, after a trial that was `kept`."""
        self.run, self.kept = self.folder / "again", False
        return self

    # What a kind does to it.

    def wait_for_begin(self):
        """Waits until the run's clock runs: its first event is written, or its end is."""
        events = self.run / "events.jsonl"
        while self.process.poll() is None and not (events.exists() and events.stat().st_size):
            time.sleep(0.005)

    def children(self, name=None):
        """Process ids of the run's child processes, of those with this name if one is given."""
        listed = []
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            listed += [int(child) for child in (task / "children").read_text().split()]
        return [child for child in listed if name in (None, Path(f"/proc/{child}/comm").read_text().strip())]

    def beside(self, command, **more):
        """Another process, which ends with the trial."""
        other = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
        self.others.append(other)
        return other

    def stop_for(self, processes, seconds):
        """SIGSTOP, and SIGCONT after so long."""
        for process in processes:
            deliver(process, signal.SIGSTOP)
        time.sleep(seconds)
        for process in processes:
            deliver(process, signal.SIGCONT)

    # What is known afterwards.

    def finish(self):
        """Waits for the end; what windtunnel says: its verdict, or None where it could give none."""
        self.process.wait()
        self.log.flush()
        if self.process.returncode == 3:
            raise SystemExit(f"the scenario has mistakes:\n{self.said()}")
        try:
            return json.loads((self.run / "run.json").read_text())
        except (OSError, json.JSONDecodeError):
            if self.process.returncode:
                return None
            # The worst of all: no report, and all is well.
            return {"verdict": {"faithful": True, "exit_code": 0, "text": "exit code 0 without a report", "warnings": []}}

    def said(self):
        return (self.folder / "log").read_text(errors="replace").strip()

    def output(self, node, name="stdout"):
        try:
            return (self.run / "nodes" / node / name).read_text(errors="replace")
        except FileNotFoundError as error:
            raise OSError(f"{node} was not started; it said: {self.said()}") from error


def node(name, code, *words, keys=""):
    """A node of a scenario that runs Python code with these words as arguments; `keys`: its other keys, one a line."""
    indented = "\n".join("        " + line for line in code.strip("\n").splitlines())
    arguments = "".join(f"      - {json.dumps(str(word))}\n" for word in words)
    more = "".join(f"    {line}\n" for line in keys.splitlines())
    return f"  {name}:\n{more}    run:\n      - {sys.executable}\n      - -c\n      - |\n{indented}\n{arguments}"

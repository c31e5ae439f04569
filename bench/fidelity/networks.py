"""The same two programs over each tool: a sender and a hearer, each in a network namespace."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = sys.executable


class Failed(Exception):
    """A tool did not do what it was told; the text says what it said."""


def call(*words, check=True):
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if check and done.returncode:
        raise Failed(f"{' '.join(words)}: {done.stdout.strip()}")
    return done.stdout


class Kernel:
    """Two namespaces, a forwarding one between them, and queueing disciplines of this kernel on its
    devices. Needs root.

    A discipline on the sender's own device would push back into its TCP (small queues), as no
    network does.
    """

    # `back` is for what comes back. The devices pass single packets, unless `trains`: super-packets
    # are what Linux does by default, and what its shapers count as one packet of overhead.
    def __init__(self, told, back=None, trains=False):
        self.names = [f"wtfid-{end}-{os.getpid()}" for end in "arb"]
        self.told, self.back, self.trains = told, back, trains

    def __enter__(self):
        a, r, b = self.names
        for name in self.names:
            call("ip", "netns", "add", name)
            call("ip", "-n", name, "link", "set", "lo", "up")
        call("ip", "netns", "exec", r, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        for number, end in enumerate((a, b)):
            near = f"eth{number}"
            call(
                "ip",
                "link",
                "add",
                "eth0",
                "netns",
                end,
                "type",
                "veth",
                "peer",
                "name",
                near,
                "netns",
                r,
            )
            for name, device, address in (
                (end, "eth0", f"10.9.{number}.2/24"),
                (r, near, f"10.9.{number}.1/24"),
            ):
                call("ip", "-n", name, "addr", "add", address, "dev", device)
                call("ip", "-n", name, "link", "set", device, "up")
                if not self.trains:
                    call("ip", "-n", name, "link", "set", device, "gso_max_segs", "1")
            call("ip", "-n", end, "route", "add", "default", "via", f"10.9.{number}.1")
        call("ip", "netns", "exec", a, "ping", "-q", "-c", "1", "-W", "5", "10.9.1.2")
        for device, told in (("eth1", self.told), ("eth0", self.back)):
            self._tell(r, device, told)
        return self

    @staticmethod
    def _tell(name, device, told):
        """A text is a root discipline. A list is a root, a class, and what is in the class."""
        if isinstance(told, list):
            call(
                "tc",
                "-n",
                name,
                "qdisc",
                "add",
                "dev",
                device,
                "root",
                "handle",
                "1:",
                *told[0].split(),
            )
            call(
                "tc",
                "-n",
                name,
                *told[1].split()[:1],
                "add",
                "dev",
                device,
                "parent",
                "1:",
                "classid",
                "1:1",
                *told[1].split()[1:],
            )
            call(
                "tc",
                "-n",
                name,
                "qdisc",
                "add",
                "dev",
                device,
                "parent",
                "1:1",
                "handle",
                "10:",
                *told[2].split(),
            )
        elif told:
            call(
                "tc",
                "-n",
                name,
                "qdisc",
                "add",
                "dev",
                device,
                "root",
                "handle",
                "1:",
                *told.split(),
            )

    def run(self, send, hear):
        """Runs the hearer, then the sender's commands side by side; `HOST` there is the hearer."""
        a, _, b = self.names
        hearer = subprocess.Popen(
            ["ip", "netns", "exec", b, *hear], stdout=subprocess.PIPE, text=True
        )
        hearer.stdout.readline()
        senders = [
            subprocess.Popen(
                ["ip", "netns", "exec", a, *(word.replace("HOST", "10.9.1.2") for word in words)],
                stdout=subprocess.PIPE,
            )
            for words in send
        ]
        for sender in senders:
            sender.communicate()
        return hearer.communicate()[0]

    def counters(self):
        """What the disciplines count, as `tc -s -j` tells it."""
        return json.loads(
            call("tc", "-n", self.names[1], "-s", "-j", "qdisc", "show", "dev", "eth1")
        )

    def __exit__(self, *_):
        for name in self.names:
            call("ip", "netns", "del", name, check=False)


class Windtunnel:
    """A link of Windtunnel whose first direction has the properties."""

    def __init__(self, told, back=None):
        self.up, self.down = told, back or ""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="wt-fidelity-")
        return self

    def run(self, send, hear):
        program = os.environ.get("WINDTUNNEL", str(ROOT / "target/release/windtunnel"))
        if not Path(program).exists():
            sys.exit(f"no {program}\nhint: cargo build --release, or set WINDTUNNEL")
        sending = "\n".join(
            f"      - {{run: {json.dumps(words).replace('HOST', 'hearer')}, start: 300ms}}"
            for words in send
        )
        file = Path(self.folder.name) / "net.yaml"
        file.write_text(f"""ipv6: false
nodes:
  sender:
    user: root
    after: hearer
    run:
{sending}
  hearer: {{run: {json.dumps(hear)}, user: root, ready: 'log:ready'}}
links:
  - {{between: [sender, hearer], name: line, up: {{{self.up}}}, down: {{{self.down}}}}}
""")
        out = Path(self.folder.name) / "run"
        done = subprocess.run(
            [program, "run", str(file), "--out", str(out), "--quiet"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if not (out / "run.json").exists():
            raise Failed(done.stderr.strip())
        self.report = json.loads((out / "run.json").read_text())
        if not self.report["verdict"]["faithful"]:
            print(f"  note: {self.report['verdict']['text'].rsplit(' (', 1)[0]}", file=sys.stderr)
        return (out / "nodes/hearer/stdout").read_text()

    def counters(self):
        return next(link for link in self.report["links"] if link["direction"] == "sender-hearer")

    def __exit__(self, *_):
        self.folder.cleanup()


class Rattan:
    """Rattan's isolated mode with one cell, in namespaces of its own. Needs root."""

    def __init__(self, told, back=None):
        ((self.kind, self.settings),) = told.items()

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="wt-fidelity-")
        return self

    def run(self, send, hear):
        cells = [f'[cells.up]\ntype = "{self.kind}"'] + [
            f"{key} = {toml(value)}" for key, value in self.settings.items()
        ]
        done = Path(self.folder.name) / "heard"
        script = " & ".join(
            shlex.join([word.replace("HOST", "10.2.1.1") for word in words]) for words in send
        )
        config = "\n".join(
            [
                '[env]\nmode = "Isolated"\nleft_veth_count = 1\nright_veth_count = 1',
                *cells,
                '[links]\nleft = "up"\nup = "right"\nright = "left"',
                f"[resource]\ncores = [{(os.cpu_count() or 1) - 1}]",
                "[general]",
                "[commands]",
                f"left = {toml(['sh', '-c', f'sleep 1; {script} & wait; sleep 3'])}",
                f"right = {toml(['sh', '-c', f'{shlex.join(hear)} > {done}'])}",
                "",
            ]
        )
        file = Path(self.folder.name) / "rattan.toml"
        file.write_text(config)
        rattan = os.environ.get("RATTAN", "rattan")
        # Its namespaces are bound below /run/netns: a mount namespace keeps them out of the
        # machine's.
        said = call(
            "unshare",
            "--net",
            "--mount",
            "sh",
            "-c",
            "mkdir -p /run/netns; mount -t tmpfs none /run/netns; ip link set lo up; "
            f"exec timeout 60 {shlex.quote(rattan)} run -c {file}",
            check=False,
        )
        if not done.exists():
            raise Failed(said.strip()[-400:])
        for _ in range(40):
            if done.read_text().strip():
                break
            time.sleep(0.1)
        return done.read_text()

    def counters(self):
        return {}

    def __exit__(self, *_):
        self.folder.cleanup()


def toml(value):
    """A value of rattan's configuration."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def trains(told, back=None):
    """The kernel's shapers as they are without further settings."""
    return Kernel(told, back, trains=True)


TOOLS = {
    "tbf-trains": trains,
    "htb-trains": trains,
    "netem-trains": trains,
    "netem": Kernel,
    "tbf": Kernel,
    "htb": Kernel,
    "tc": Kernel,
    "windtunnel": Windtunnel,
    "rattan": Rattan,
}

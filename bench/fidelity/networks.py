"""The same two programs over each tool: a sender and a receiver, each in a network namespace."""

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
    """A tool failed; the text is its output."""


def call(*words, check=True):
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if check and done.returncode:
        raise Failed(f"{' '.join(words)}: {done.stdout.strip()}")
    return done.stdout


def command(line):
    """A command without blanks in its words."""
    return call(*line.split())


class Kernel:
    """Two namespaces, a forwarding one between them, and queueing disciplines of this kernel on its
    devices. Needs root.

    A discipline on the sender's own device would push back into its TCP (small queues), as no
    network does.
    """

    # `back` is for what comes back. The devices pass single packets, unless `trains`: super-packets
    # are what Linux does by default, and what its shapers count as one packet of overhead.
    def __init__(self, settings, back=None, trains=False):
        self.names = [f"wtfid-{end}-{os.getpid()}" for end in "arb"]
        self.settings, self.back, self.trains = settings, back, trains

    def __enter__(self):
        a, r, b = self.names
        for name in self.names:
            call("ip", "netns", "add", name)
            call("ip", "-n", name, "link", "set", "lo", "up")
        call("ip", "netns", "exec", r, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        self._connect(0, a)
        self._connect(1, b)
        call("ip", "netns", "exec", a, "ping", "-q", "-c", "1", "-W", "5", "10.9.1.2")
        for device, settings in (("eth1", self.settings), ("eth0", self.back)):
            self._shape(r, device, settings)
        return self

    def _connect(self, number, end):
        """Joins an end to the middle."""
        near = f"name eth{number} netns {self.names[1]}"
        command(f"ip link add eth0 netns {end} type veth peer {near}")
        self._address(number, end)
        for name, device in ((end, "eth0"), (self.names[1], f"eth{number}")):
            if not self.trains:
                command(f"ip -n {name} link set {device} gso_max_segs 1")

    def _address(self, number, end):
        for name, device, address in (
            (end, "eth0", f"10.9.{number}.2/24"),
            (self.names[1], f"eth{number}", f"10.9.{number}.1/24"),
        ):
            command(f"ip -n {name} addr add {address} dev {device}")
            command(f"ip -n {name} link set {device} up")
        command(f"ip -n {end} route add default via 10.9.{number}.1")

    @staticmethod
    def _shape(name, device, settings):
        """A text is a root discipline. A list is a root, a class, and what is in the class."""
        if isinstance(settings, list):
            root, (verb, about), inside = settings[0], settings[1].split(maxsplit=1), settings[2]
            command(f"tc -n {name} qdisc add dev {device} root handle 1: {root}")
            command(f"tc -n {name} {verb} add dev {device} parent 1: classid 1:1 {about}")
            command(f"tc -n {name} qdisc add dev {device} parent 1:1 handle 10: {inside}")
        elif settings:
            command(f"tc -n {name} qdisc add dev {device} root handle 1: {settings}")

    def run(self, send, receive):
        """Runs the receiver, then the sender's commands side by side; `HOST` is the receiver."""
        a, _, b = self.names
        receiver = subprocess.Popen(
            ["ip", "netns", "exec", b, *receive], stdout=subprocess.PIPE, text=True
        )
        receiver.stdout.readline()
        senders = [
            subprocess.Popen(
                ["ip", "netns", "exec", a, *(word.replace("HOST", "10.9.1.2") for word in words)],
                stdout=subprocess.PIPE,
            )
            for words in send
        ]
        for sender in senders:
            sender.communicate()
        return receiver.communicate()[0]

    def counters(self):
        """What the disciplines count, as `tc -s -j` prints it."""
        return json.loads(
            call("tc", "-n", self.names[1], "-s", "-j", "qdisc", "show", "dev", "eth1")
        )

    def __exit__(self, *_):
        for name in self.names:
            call("ip", "netns", "del", name, check=False)


class Serial(Kernel):
    """The same with a serial line of 10 Mbit/s (line.py) from the middle to the receiver.

    Its device stops its queue until the packet on the line has left, which a shaper's does not: the
    discipline is the device's root.
    """

    def __enter__(self):
        words = [PYTHON, str(Path(__file__).resolve().parent / "line.py")]
        self.line = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.devices = self.line.stdout.readline().split()
        if len(self.devices) != 2:
            raise Failed(self.line.communicate()[1].strip())
        try:
            return super().__enter__()
        except Failed:
            self.line.terminate()
            raise

    def _connect(self, number, end):
        if number == 0:
            super()._connect(number, end)
            return
        off = "cd /proc/sys/net/ipv6/conf/all 2>/dev/null || exit 0; echo 1 >disable_ipv6"
        for device, name, called in zip(self.devices, (self.names[1], end), ("eth1", "eth0")):
            command(f"ip link set {device} netns {name}")
            call("ip", "netns", "exec", name, "sh", "-c", off)
            command(f"ip -n {name} link set {device} name {called} mtu 1500")
        self._address(number, end)

    def __exit__(self, *_):
        self.line.terminate()
        self.line.communicate()
        super().__exit__()


class Windtunnel:
    """A link of Windtunnel whose first direction has the properties."""

    def __init__(self, settings, back=None):
        self.up, self.down = settings, back or ""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="wt-fidelity-")
        return self

    def run(self, send, receive):
        program = os.environ.get("WINDTUNNEL", str(ROOT / "target/release/windtunnel"))
        if not Path(program).exists():
            sys.exit(f"no {program}\nhint: cargo build --release, or set WINDTUNNEL")
        sending = "\n".join(
            f"      - {{run: {json.dumps(words).replace('HOST', 'receiver')}, start: 300ms}}"
            for words in send
        )
        file = Path(self.folder.name) / "net.yaml"
        file.write_text(f"""ipv6: false
nodes:
  sender:
    user: root
    after: receiver
    run:
{sending}
  receiver: {{run: {json.dumps(receive)}, user: root, ready: 'log:ready'}}
links:
  - {{between: [sender, receiver], name: line, up: {{{self.up}}}, down: {{{self.down}}}}}
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
        return (out / "nodes/receiver/stdout").read_text()

    def counters(self):
        return next(link for link in self.report["links"] if link["direction"] == "sender-receiver")

    def __exit__(self, *_):
        self.folder.cleanup()


class Rattan:
    """Rattan's isolated mode with one cell, in namespaces of its own. Needs root."""

    def __init__(self, settings, back=None):
        ((self.kind, self.settings),) = settings.items()

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="wt-fidelity-")
        return self

    def run(self, send, receive):
        cells = [f'[cells.up]\ntype = "{self.kind}"'] + [
            f"{key} = {toml(value)}" for key, value in self.settings.items()
        ]
        done = Path(self.folder.name) / "received"
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
                f"right = {toml(['sh', '-c', f'{shlex.join(receive)} > {done}'])}",
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


def trains(settings, back=None):
    """The kernel's shapers as they are without further settings."""
    return Kernel(settings, back, trains=True)


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

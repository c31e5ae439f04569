"""Machines for the benches: network namespaces joined by a bridge, each with an agent of an ordinary user."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lab

NOBODY = "65534"


class Machines:
    """So many machines with an agent each; all goes away with the `with` block. As root the agents are uid 65534's; else
    everything is in one user namespace."""

    def __init__(self, count):
        self.root = os.geteuid() == 0
        self.folder = Path(tempfile.mkdtemp(prefix="wt-bench-"))
        self.processes = []
        self.switch = self.hold(["unshare", *([] if self.root else ["--user", "--map-root-user"]), "--net"])
        self.ip(self.switch, "link add switch type bridge")
        self.ip(self.switch, "link set switch up")
        self.machines = [self.plug_in(at) for at in range(count)]
        self.own(self.folder)
        shutil.copy(lab.program(), self.folder / "windtunnel")
        for at in range(count):
            self.own(self.home(at), make=True)
        self.ask(0, "keygen", "../key")
        self.agents = [self.start_agent(at) for at in range(count)]

    def __enter__(self):
        self.meet()
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def hold(self, words):
        process = subprocess.Popen([*words, "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.processes.append(process)
        while Path(f"/proc/{process.pid}/comm").read_text().strip() != "cat":
            time.sleep(0.005)
        return process.pid

    def enter(self, pid):
        users = [] if self.root else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(pid), "--net", *users, "--"]

    def ip(self, pid, words):
        subprocess.run([*self.enter(pid), "ip", *words.split()], check=True)

    def plug_in(self, at):
        pid = self.hold([*self.enter(self.switch), "unshare", "--net"])
        self.ip(self.switch, f"link add port-{at} type veth peer name uplink netns {pid}")
        self.ip(self.switch, f"link set port-{at} master switch up")
        for words in ("link set lo up", f"addr add 10.99.0.{at + 1}/24 dev uplink", "link set uplink up"):
            self.ip(pid, words)
        return pid

    def own(self, path, make=False):
        if make:
            path.mkdir()
        path.chmod(0o755)
        if self.root:
            os.chown(path, int(NOBODY), int(NOBODY))

    def home(self, at):
        return self.folder / f"m{at}"

    def words(self, at, *words):
        """A command line on a machine, as the ordinary user. It ends with the bench."""
        user = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"] if self.root else []
        return [*self.enter(self.machines[at]), "setpriv", "--pdeathsig", "KILL", *user, "--", *words]

    def start(self, at, *words, **how):
        environment = {**os.environ, "HOME": str(self.home(at))}
        return subprocess.Popen(self.words(at, *words), cwd=self.home(at), env=environment, stdin=subprocess.DEVNULL, text=True, **how)

    def windtunnel(self, at, *words, **how):
        return self.start(at, str(self.folder / "windtunnel"), *words, **how)

    def ask(self, at, *words):
        process = self.windtunnel(at, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, error = process.communicate()
        if process.returncode:
            raise SystemExit(f"{words}: {error}")
        return out

    def start_agent(self, at):
        log = open(self.folder / f"m{at}.log", "w", encoding="utf-8")
        join = ["--join", "10.99.0.1"] if at else []
        words = ["agent", "--listen", f"10.99.0.{at + 1}:7447", "--name", f"m{at}", "--key", "../key", "--uplink", "100gbit", *join]
        process = self.windtunnel(at, *words, stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def meet(self):
        """Waits until all agents know each other's clocks."""
        count = len(self.agents)
        for _ in range(600):
            process = self.windtunnel(0, "hosts", "10.99.0.1", "--key", "../key", "--json", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            out = process.communicate()[0]
            hosts = json.loads(out).get("hosts", []) if out else []
            if len(hosts) == count and all(sum(bool(peer["clock"]) for peer in host["peers"]) == count - 1 for host in hosts):
                return
            time.sleep(0.05)
        raise SystemExit("the agents do not find each other")

    def begin(self, scenario, *options):
        """Starts a run over all machines; its folder, and its process, of which standard error is read."""
        folder = Path(tempfile.mkdtemp(prefix="run-", dir=self.home(0)))
        self.own(folder)
        (folder / "net.yaml").write_text(scenario)
        words = ["run", str(folder / "net.yaml"), "--hosts", "10.99.0.1,all", "--key", "../key", "--out", str(folder / "run"), *options]
        return folder / "run", self.windtunnel(0, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, scenario, *options):
        """Runs to the end; the run folder."""
        folder, process = self.begin(scenario, "--quiet", *options)
        out, error = process.communicate()
        if not (folder / "run.json").exists():
            raise SystemExit(f"the scenario did not run:\n{error}")
        if not json.loads((folder / "run.json").read_text())["verdict"]["faithful"]:
            print(f"note: {out.strip().splitlines()[-1]}", file=sys.stderr)
        return folder

"""A node of a live run, or a group of nodes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from windtunnel import errors, program
from windtunnel.aio import waits
from windtunnel.command import DEVNULL, PIPE, Argv, Completed, Process, Stream

if TYPE_CHECKING:
    from windtunnel.events import Event
    from windtunnel.run import Run
    from windtunnel.status import NodeStatus

    PathLike = Union[str, "os.PathLike[str]"]


class Node:
    """A node by its name; of a group, what is done is done to each member."""

    def __init__(self, run: Run, name: str, plan: Mapping[str, Any]) -> None:
        self.run = run
        self.name = name
        self._plan = plan

    @property
    def address(self) -> str:
        """Its first address: the IPv4 one where it has one."""
        return self.addresses[0]

    @property
    def addresses(self) -> list[str]:
        """The addresses of its interfaces, in their order."""
        return [
            interface[family]
            for interface in self._plan.get("interfaces", [])
            for family in ("v4", "v6")
            if interface.get(family)
        ]

    @waits
    def exec(
        self,
        argv: Argv,
        *,
        input: Union[str, bytes, None] = None,
        timeout: Optional[float] = None,
        check: bool = False,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[PathLike] = None,
    ) -> Completed:
        """Runs a command in the node and waits for its end, like `subprocess.run`.

        A text is split into words as a shell would, and no shell runs it; write
        `["sh", "-c", "…"]` for one.

        Raises:
            CommandFailed: `check`, and it exited with another code than 0.
            CommandNotRun: it was not found, or cannot be executed.
            TimeoutExpired: after `timeout` seconds it still ran; it is ended.
        """
        given = input.encode() if isinstance(input, str) else input
        stdin = DEVNULL if given is None else PIPE
        with self.popen(argv, stdin=stdin, env=env, cwd=cwd) as process:
            stdout, stderr = process.communicate(given, timeout)
        assert process.returncode is not None
        done = Completed(process.argv, process.returncode, stdout, stderr)
        return done.check() if check else done

    def popen(
        self,
        argv: Argv,
        *,
        stdin: Stream = DEVNULL,
        stdout: Stream = PIPE,
        stderr: Stream = PIPE,
        env: Optional[Mapping[str, str]] = None,
        cwd: Optional[PathLike] = None,
    ) -> Process:
        """Starts a command in the node, like `subprocess.Popen`; it ends when its process is
        closed, or the run ends."""
        return Process(self.run.folder, self.name, argv, stdin, stdout, stderr, env, cwd)

    def shell(self, *argv: str) -> int:
        """Opens a shell on this process's terminal, and returns its exit code."""
        line = program.arguments("shell", self.name, *argv, run=self.run.folder)
        return subprocess.call(line)

    @waits
    def kill(self) -> list[Event]:
        """Ends its programs with SIGKILL; they are not started again."""
        return self._do("kill")

    @waits
    def stop(self) -> list[Event]:
        """Ends its programs with SIGTERM; they are not started again."""
        return self._do("stop")

    @waits
    def restart(self) -> list[Event]:
        """Ends its programs and starts them again."""
        return self._do("restart")

    @waits
    def pause(self) -> list[Event]:
        """Stops its programs where they are (SIGSTOP)."""
        return self._do("pause")

    @waits
    def resume(self) -> list[Event]:
        """Lets programs go on that were paused."""
        return self._do("resume")

    @waits
    def set(
        self,
        *,
        cpu: Union[str, float, Mapping[str, Any], None] = None,
        memory: Union[str, None] = None,
        pids: Optional[int] = None,
        disk: Optional[str] = None,
    ) -> None:
        """Changes what limits its programs: `set(cpu="25%")`. With `cpu={"min": …, "weight": …}`
        what it has of processors that are divided by weight."""
        limits = {"cpu": cpu, "memory": memory, "pids": pids, "disk": disk}
        given = {key: value for key, value in limits.items() if value is not None}
        if not given:
            raise errors.UsageError(
                f"nothing is to be set at {self.name}", 'give a limit, as in `set(cpu="25%")`'
            )
        for key, value in given.items():
            text = program.text_of(value)
            program.ask("set", f"{self.name}.{key}={text}", run=self.run.folder)

    def status(self) -> NodeStatus:
        """What its programs do now."""
        for node in self.run.ps()["nodes"]:
            if node["node"] == self.name:
                return node
        raise errors.UsageError(f"{self.name} is a group", "ask for the status of a member")

    @waits
    def wait_ready(self) -> None:
        """Waits until each of its programs has been ready once: by its `ready`, or else as soon as
        it has started. How long that may take is for `ready` to say."""
        waiting = set(range(len(self._plan.get("programs", []))))
        with self.run.events() as events:
            while waiting and (event := next(events, None)) is not None:
                if event.get("node") == self.name and event.kind == self._ready_kind(event):
                    waiting.discard(event["program"])
        if waiting:
            raise errors.NoRun(f"the run ended before {self.name} was ready")

    def output(self, stream: str = "stdout", number: Optional[int] = None) -> str:
        """What its program has written until now; `number`: which of several."""
        return self.run.output(self.name, stream, number)

    def _ready_kind(self, event: Event) -> Optional[str]:
        """The event that says that the program of an event is ready."""
        if "program" not in event:
            return None
        has_condition = self._plan["programs"][event["program"]].get("ready")
        return "program-ready" if has_condition else "program-started"

    def _do(self, verb: str) -> list[Event]:
        return self.run.do({"node": self.name, "do": verb})

    def __repr__(self) -> str:
        return f"<Node {self.name}>"

"""A live run: everything that can be asked of it and done to it."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional, Union, cast, overload

from windtunnel import control, errors, program
from windtunnel.aio import in_thread, waits
from windtunnel.events import Event
from windtunnel.faults import Fault
from windtunnel.link import Link
from windtunnel.names import LinkName, NodeName, ServiceName
from windtunnel.node import Node
from windtunnel.recording import Capture, Recording
from windtunnel.report import Verdict, names
from windtunnel.results import Results
from windtunnel.service import Service

if TYPE_CHECKING:
    from windtunnel.launch import Child
    from windtunnel.status import LaneProperties, RunStatus, Snapshot

    PathLike = Union[str, "os.PathLike[str]"]
    Names = Union[str, Sequence[str]]


class Run(Results):
    """A run, from its beginning on. Leaving its `with` or `async with` block ends it."""

    def __init__(
        self, folder: PathLike, child: Optional[Child] = None, check: Optional[bool] = None
    ) -> None:
        super().__init__(folder)
        self._child = child
        self._check = check
        self._connection: Optional[control.Connection] = None

    @property
    def control(self) -> control.Connection:
        """The connection to the run, which requests share."""
        if self._connection is None:
            self._connection = control.Connection(self.folder)
        return self._connection

    @property
    def is_live(self) -> bool:
        """Whether it goes on."""
        if self._child is not None and self._child.has_ended():
            return False
        return control.is_live(self.folder)

    @overload
    def __getitem__(self, name: NodeName) -> Node: ...

    @overload
    def __getitem__(self, name: LinkName) -> Link: ...

    @overload
    def __getitem__(self, name: ServiceName) -> Service: ...

    @overload
    def __getitem__(self, name: str) -> Any: ...

    def __getitem__(self, name: str) -> Any:
        """The node, group, link or service of this name; of several, the first of these. What
        `Network.node` and `Network.link` return keeps its type here."""
        if isinstance(name, ServiceName):
            return self.service(name)
        if isinstance(name, LinkName):
            return self.link(name)
        if name in self._names["node"] or name in self._names["group"]:
            return self.node(name)
        if name in self._names["link"]:
            return self.link(name)
        if name in self._names["service"]:
            return self.service(name)
        raise KeyError(f"{name}: {self.name} has {self._all('node', 'group', 'link', 'service')}")

    def node(self, name: str) -> Node:
        """A node, a group of nodes, or a reservation."""
        for node in self.plan["nodes"]:
            if node["name"] == name:
                return Node(self, name, node)
        if name in self._names["group"] or name in self._names["reservation"]:
            return Node(self, name, {})
        raise self._unknown("node", name, self._all("node", "group"))

    def link(self, name: str) -> Link:
        """A link."""
        if name not in self._names["link"]:
            raise self._unknown("link", name, self._all("link"))
        return Link(self, name)

    def service(self, name: str) -> Service:
        """A service."""
        if name not in self._names["service"]:
            raise self._unknown("service", name, self._all("service"))
        return Service(self, name)

    @waits
    def ps(self) -> RunStatus:
        """The state of every program and service."""
        return cast("RunStatus", self.control.ask("ps"))

    @waits
    def links(self, changed: bool = False) -> list[LaneProperties]:
        """The properties of every link direction; `changed`: of those that are not as they were
        when the run began."""
        lanes = self.control.ask("links")["links"]
        return [lane for lane in lanes if lane["changed_from"] or not changed]

    @waits
    def snapshot(self) -> Snapshot:
        """What links do now, and the state of every program."""
        return cast("Snapshot", self.control.ask("snapshot"))

    @waits
    def services(self) -> list[dict[str, Any]]:
        """All services with their replicas."""
        return cast("list[dict[str, Any]]", self.control.ask("services")["services"])

    @waits
    def reservations(self) -> list[dict[str, Any]]:
        """How it divides what it has: reservations and nodes, each after the one around it."""
        return cast("list[dict[str, Any]]", self.control.ask("reservations")["parts"])

    @waits
    def do(self, event: Union[str, Mapping[str, Any], Sequence[Mapping[str, Any]]]) -> list[Event]:
        """Lets an event of the scenario file happen now, or a list of them at one instant:
        `do({"link": "ocean", "down": True})`. Returns what was done at once."""
        text = event if isinstance(event, str) else program.text_of(event)
        done = program.ask("do", text, run=self.folder)
        return [Event(it) for it in done["events"]]

    @waits
    def partition(
        self,
        *groups: Sequence[str],
        from_: Optional[Names] = None,
        to: Optional[Names] = None,
    ) -> Fault:
        """Cuts every link between groups: `partition(["a", "b"], ["c"])`; or one way, `from_` some
        `to` others. In a `with` block, it ends with the block."""
        if from_ is not None or to is not None:
            cut: Any = {"from": from_, "to": to}
        else:
            cut = [list(group) for group in groups]
        return Fault(self.heal, self.do({"partition": cut}))

    @waits
    def heal(self) -> list[Event]:
        """Ends the partition."""
        return self.do({"heal": True})

    @waits
    def record(
        self,
        *,
        layers: Optional[Sequence[str]] = None,
        nodes: Optional[Sequence[str]] = None,
        flows: Optional[Sequence[str]] = None,
        direction: Optional[str] = None,
        max: Optional[str] = None,
    ) -> Recording:
        """Records from now on, or something else than before. In a `with` block, until its end."""
        recording = Recording(self.control)
        recording.begin(layers=layers, nodes=nodes, flows=flows, direction=direction, max=max)
        return recording

    @property
    def recording(self) -> Recording:
        """What is recorded now."""
        return Recording(self.control)

    @waits
    def capture(self, place: str, path: PathLike, snap_bytes: int = 0) -> Capture:
        """Writes frames of a node or link to a new pcapng file, until the capture is stopped; in a
        `with` block, until its end."""
        return Capture(self.folder, place, path, snap_bytes)

    @waits
    def stop(self, wait: bool = True) -> None:
        """Ends the run as if it had finished, and waits until it has."""
        with contextlib.suppress(errors.NoRun):
            self.control.ask("stop")
        if wait:
            self.wait()

    @waits
    def wait(self, timeout: Optional[float] = None) -> Verdict:
        """Waits until the run has ended by itself.

        Raises:
            TimeoutExpired: it goes on.
        """
        if self._child is not None:
            self._child.wait(timeout)
        else:
            self._until_closed(timeout)
        self._disconnect()
        return self.verdict

    def _until_closed(self, timeout: Optional[float]) -> None:
        from windtunnel.watch import Deadline, until_ready

        try:
            connection = control.Connection(self.folder)
        except errors.NoRun:
            return
        try:
            # A run sends nothing that was not asked for: it is readable at its end.
            if not until_ready(connection.fileno(), deadline=Deadline(timeout)):
                raise errors.TimeoutExpired(f"the run in {self.folder} goes on after {timeout} s")
        finally:
            connection.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._leave(error)

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        await in_thread(lambda: self._leave(error))

    def _abandon(self) -> None:
        """Ends a run that the task which has started it does not get any more."""
        self._leave(errors.ControlError("the run was abandoned"))

    def _leave(self, error: Optional[BaseException]) -> None:
        """Ends a run that this process has started; one that it only asks goes on."""
        if self._child is None:
            self._disconnect()
            return
        try:
            self.stop()
        except BaseException as failure:
            self._child.end()
            if isinstance(failure, KeyboardInterrupt):
                # Like a second Ctrl-C: programs that ignore the first are killed.
                self._child.end()
            with contextlib.suppress(errors.WindtunnelError):
                self._child.wait()
            raise
        finally:
            self._disconnect()
        if error is not None:
            return
        if self._check is not False:
            self.verdict.check(faithful=self._check is True)
        if not self.verdict.faithful:
            warnings.warn(self.verdict.text, errors.NotFaithfulWarning, stacklevel=3)

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        return names(self.plan)

    def _all(self, *kinds: str) -> str:
        return ", ".join(name for kind in kinds for name in self._names[kind]) or "none"

    def _unknown(self, kind: str, name: str, there: str) -> errors.UsageError:
        return errors.UsageError(f"{self.name} has no {kind} `{name}`", f"there are {there}")


def attach(folder: PathLike) -> Run:
    """The run that lives in a folder, whatever has started it. Leaving its `with` block does not
    end it."""
    run = Run(folder)
    _ = run.control
    return run


def runs() -> list[Run]:
    """All live runs of this user on this machine, in whatever folder."""
    return [Run(it["folder"]) for it in program.ask("ls")["runs"] if it.get("name") is not None]

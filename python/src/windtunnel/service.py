"""A service of a live run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from windtunnel import program
from windtunnel.aio import waits

if TYPE_CHECKING:
    from windtunnel.run import Run
    from windtunnel.status import ServiceStatus


class Service:
    """A service by its name. Changes hold at once for what is new."""

    def __init__(self, run: Run, name: str) -> None:
        self.run = run
        self.name = name

    @waits
    def add(self, replica: str) -> None:
        """Makes a node a replica."""
        self._change("add", replica)

    @waits
    def remove(self, replica: str) -> None:
        """Makes a node a replica no longer; its connections go on."""
        self._change("remove", replica)

    @waits
    def drain(self, replica: str, undo: bool = False) -> None:
        """Gives a replica no new connections, or with `undo` gives it some again."""
        self._change("drain", replica, undo=undo)

    @waits
    def weight(self, replica: str, weight: int) -> None:
        """Sets a replica's share of new connections, where the policy is `weighted`."""
        self._change("weight", replica, weight)

    @waits
    def show(self) -> ServiceStatus:
        """Its replicas, where each router redirects what is new, and its connections."""
        answer = self.run.control.ask("services", service=self.name)
        return cast("ServiceStatus", answer["services"][0])

    def _change(self, verb: str, *words: Any, **options: Any) -> None:
        program.ask(f"service {verb}", self.name, *words, run=self.run.folder, **options)

    def __repr__(self) -> str:
        return f"<Service {self.name}>"

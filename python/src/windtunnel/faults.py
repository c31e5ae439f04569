"""Faults that a caller makes, and how they end."""

from __future__ import annotations

from typing import Callable, Optional

from windtunnel.events import Event


class Fault:
    """A cut that has been made. In a `with` block, it ends with the block:

    with run["ocean"].down():
        ...
    """

    def __init__(self, undo: Callable[[], object], events: Optional[list[Event]] = None) -> None:
        self._undo = undo
        self.events = events or []
        """What was done, and when, where the run says so."""

    def end(self) -> None:
        """Ends it now."""
        self._undo()

    def __enter__(self) -> Fault:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    async def __aenter__(self) -> Fault:
        return self

    async def __aexit__(self, *_: object) -> None:
        from windtunnel.aio import in_thread

        await in_thread(self.end)

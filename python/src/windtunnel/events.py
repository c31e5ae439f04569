"""What happened in a run: the lines of `events.jsonl`, also while they come."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any, Optional

from windtunnel import below, control, errors
from windtunnel.aio import in_thread, interruptible
from windtunnel.watch import MODIFIED, Interrupter, Watch, until_ready

NAME = "events.jsonl"


class Event(dict[str, Any]):
    """One event: a dict with the fields of its line (docs/reference/run-folder.md)."""

    @property
    def kind(self) -> str:
        """What happened: `link-set`, `program-exited` …"""
        return str(self["event"])

    @property
    def at_ns(self) -> int:
        """When, in nanoseconds after the run began."""
        return int(self["at_ns"])

    @property
    def at(self) -> float:
        """When, in seconds after the run began."""
        return self.at_ns / 1e9

    @property
    def intended_ns(self) -> Optional[int]:
        """When it was to happen; absent for what was not planned."""
        return self.get("intended_ns")


class Events:
    """Events of a run, from its beginning until its end; for `for` and for `async for`.

    They come while the run lives. The iterator ends with the run, or with `close`.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = below.file(folder, NAME)
        self._partial = b""
        self._interrupter = Interrupter()
        self._watch: Optional[Watch] = None
        self._run: Optional[control.Connection] = None
        with contextlib.suppress(errors.NoRun):  # it is over: all events are there
            self._run = control.Connection(folder)
            # Of the file that is open, whatever has its name by now.
            self._watch = Watch(f"/proc/self/fd/{self._file.fileno()}", MODIFIED)

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        event = self._next()
        if event is None:
            raise StopIteration
        return event

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await in_thread(self._next)
        if event is None:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        """Ends it."""
        if self._file.closed:
            return
        self._file.close()
        self._interrupter.close()
        if self._watch is not None:
            self._watch.close()
        if self._run is not None:
            self._run.close()

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def _next(self) -> Optional[Event]:
        while not self._file.closed:
            is_over = self._watch is None
            line = self._line()
            if line is not None:
                return Event(json.loads(line))
            if is_over:
                self.close()
                return None
            self._wait()
        return None

    def _line(self) -> Optional[bytes]:
        """The next whole line that is there."""
        self._partial += self._file.readline(below.LINE_MOST + 1)
        if not self._partial.endswith(b"\n"):
            if len(self._partial) > below.LINE_MOST:
                raise below.long_line(os.path.join(self._folder, NAME))
            return None
        line, self._partial = self._partial, b""
        return line

    def _wait(self) -> None:
        """Waits for more, or for the end of the run, after which no more comes."""
        assert self._watch is not None
        assert self._run is not None
        with interruptible(self._interrupter.set):
            ready = until_ready(
                self._watch.fileno(), self._run.fileno(), self._interrupter.fileno()
            )
        if self._run.fileno() in ready:
            self._run.close()
            self._watch.close()
            self._watch = self._run = None
            return
        self._watch.clear()
        if self._interrupter.is_set:
            self.close()


def read(folder: str) -> list[Event]:
    """The events of a run until now. A last line that was cut is left out."""
    return [Event(json.loads(line)) for line in below.lines(folder, NAME)]

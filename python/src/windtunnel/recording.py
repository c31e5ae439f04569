"""What a live run records and captures, and the records of any run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Union, cast

from windtunnel import control, errors, program
from windtunnel.aio import waits

if TYPE_CHECKING:
    from windtunnel.status import RecordStatus

    PathLike = Union[str, "os.PathLike[str]"]
    Names = Union[str, Sequence[str]]


class Recording:
    """What a live run records as evidence. In a `with` block, it ends with the block."""

    def __init__(self, connection: control.Connection) -> None:
        self._run = connection

    def begin(self, **order: Any) -> RecordStatus:
        """Records from now on; see `Run.record`."""
        given = {key: value for key, value in order.items() if value is not None}
        return cast("RecordStatus", self._run.ask("record-start", **given))

    @waits
    def stop(self) -> RecordStatus:
        """Records nothing from now on."""
        return cast("RecordStatus", self._run.ask("record-stop"))

    @waits
    def status(self) -> RecordStatus:
        """What is recorded, and what was lost."""
        return cast("RecordStatus", self._run.ask("record-status"))

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Capture:
    """Frames of a node or link that are written to a file, until `stop` or the end of the run."""

    def __init__(self, folder: str, place: str, path: PathLike, snap_bytes: int) -> None:
        self.path = os.fspath(path)
        self._captured: Optional[dict[str, Any]] = None
        self._run = control.Connection(folder)
        with open(path, "xb") as file:
            try:
                fields = {"place": place, "snap_bytes": snap_bytes}
                self._run.send("capture", fields, [file.fileno()])
                self._run.receive()
            except BaseException:
                self._run.close()
                os.unlink(path)
                raise

    @waits
    def stop(self) -> dict[str, Any]:
        """Ends it, when all is written: how many `packets` were captured, and how many of them
        were `lost`."""
        if self._captured is None:
            self._run.send("capture-end", {})
            self._captured = self._run.receive()
            self._run.close()
        if self._captured.get("failure"):
            raise errors.MachineError(f"cannot write {self.path}: {self._captured['failure']}")
        return {key: self._captured[key] for key in ("packets", "lost")}

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Records:
    """The records of a run. Filters are those of `windtunnel records`: `layer`, `node`, `flow`,
    `link`, `kind`, `from_`, `to`."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def show(self, *, lines: Optional[int] = None, **filters: Any) -> Iterator[dict[str, Any]]:
        """Each record as a dict, in order of time."""
        chosen = _options(filters)
        for line in program.lines("records show", self.folder, json=True, lines=lines, **chosen):
            yield json.loads(line)

    def follow(self, *, every: Optional[str] = None, **filters: Any) -> Iterator[dict[str, Any]]:
        """The same while the run lives, or with `every` rates of flows and links."""
        chosen = _options(filters)
        for line in program.lines("records follow", self.folder, json=True, every=every, **chosen):
            yield json.loads(line)

    @waits
    def stats(self, /, **filters: Any) -> dict[str, Any]:
        """Sums by layer, flow and link direction; gaps; what was not seen."""
        answer = program.ask("records stats", self.folder, **_options(filters))
        return cast("dict[str, Any]", answer)

    @waits
    def export(
        self, /, format: str, path: PathLike, *, force: bool = False, **filters: Any
    ) -> None:
        """Writes them in the format of another program: `pcapng`, `perfetto`, `parquet` …"""
        options = {"format": format, "output": path, "force": force, **_options(filters)}
        program.output("records export", self.folder, **options)

    @waits
    def workload(self, path: PathLike, *, force: bool = False) -> None:
        """Writes what the programs did: `replay` of a node does it again."""
        program.output("records workload", self.folder, output=path, force=force)


def _options(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of names are written with commas."""
    return {
        key: value if isinstance(value, (str, int)) else ",".join(map(str, value))
        for key, value in filters.items()
        if value is not None
    }

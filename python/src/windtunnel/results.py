"""What a run has left in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, cast, overload

from windtunnel import below, errors, events, page, program, tables
from windtunnel.aio import waits
from windtunnel.recording import Records
from windtunnel.report import Report, Verdict

if TYPE_CHECKING:
    import subprocess

    import pandas
    import polars

    PathLike = Union[str, "os.PathLike[str]"]


class Results:
    """A run folder: of a run that is over (`windtunnel.open`), or of one that lives (`Run`)."""

    def __init__(self, folder: PathLike) -> None:
        self.folder = os.path.abspath(folder)

    @property
    def report(self) -> Report:
        """`run.json`, once the run is over."""
        try:
            return cast("Report", self._json("run.json"))
        except FileNotFoundError:
            raise errors.NoReport(
                f"{self.folder} has no run.json", "the run goes on, or it was killed"
            ) from None

    @property
    def verdict(self) -> Verdict:
        """The judgement of the run, once it is over."""
        return Verdict(self.report, self.folder)

    def check(self) -> None:
        """Raises what is wrong with the run, if anything is: see `Verdict.check`."""
        self.verdict.check()

    @cached_property
    def plan(self) -> dict[str, Any]:
        """`plan.json`: the scenario resolved, with names, addresses and defaults."""
        return cast("dict[str, Any]", self._json("plan.json"))

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return str(self.plan["name"])

    @property
    def records(self) -> Records:
        """What was recorded as evidence."""
        return Records(self.folder)

    def events(self) -> events.Events:
        """What happened, from the beginning; while the run lives, also what happens until its
        end. For `for` and for `async for`."""
        return events.Events(self.folder)

    def output(self, node: str, stream: str = "stdout", number: Optional[int] = None) -> str:
        """What a node's program has written; `number`: which of several."""
        name = stream if number is None else f"{stream}.{number}"
        try:
            return below.read(self.folder, "nodes", node, name).decode(errors="replace")
        except FileNotFoundError:
            there = below.names(self.folder, "nodes", node)
            hint = f"there are {', '.join(there)}" if there else "it has no programs"
            raise errors.UsageError(f"node {node} has no {name}", hint) from None

    @waits
    def explain(
        self,
        *,
        request: Optional[str] = None,
        slowest: Optional[int] = None,
        all: bool = False,
        client: Optional[str] = None,
        layers: bool = False,
    ) -> dict[str, Any]:
        """Why requests took as long as they did; needs records."""
        answer = program.ask(
            "explain",
            self.folder,
            request=request,
            slowest=slowest,
            all=all,
            client=client,
            layers=layers,
        )
        return cast("dict[str, Any]", answer)

    def table(self, name: str) -> list[dict[str, Any]]:
        """A table as a list of dicts: `links`, `events`, `flows`, `records`, `programs`,
        `expectations`, `lanes`, `limits`, `bounds`, `echoes`, `paths` or `lateness`."""
        return tables.rows(self.folder, name, lambda: self.report)

    @overload
    def frame(self, table: str, kind: Literal["pandas"] = ...) -> pandas.DataFrame: ...

    @overload
    def frame(self, table: str, kind: Literal["polars"]) -> polars.DataFrame: ...

    def frame(self, table: str, kind: str = "pandas") -> Any:
        """A table as a frame of pandas or Polars, which must be installed."""
        return tables.frame(self.table(table), kind)

    @overload
    def links_frame(self, kind: Literal["pandas"] = ...) -> pandas.DataFrame: ...

    @overload
    def links_frame(self, kind: Literal["polars"]) -> polars.DataFrame: ...

    def links_frame(self, kind: Any = "pandas") -> Any:
        """What each link direction did in each 100 ms."""
        return self.frame("links", kind)

    @overload
    def events_frame(self, kind: Literal["pandas"] = ...) -> pandas.DataFrame: ...

    @overload
    def events_frame(self, kind: Literal["polars"]) -> polars.DataFrame: ...

    def events_frame(self, kind: Any = "pandas") -> Any:
        """What happened."""
        return self.frame("events", kind)

    @overload
    def flows_frame(self, kind: Literal["pandas"] = ...) -> pandas.DataFrame: ...

    @overload
    def flows_frame(self, kind: Literal["polars"]) -> polars.DataFrame: ...

    def flows_frame(self, kind: Any = "pandas") -> Any:
        """Flows with what both directions carried; needs records."""
        return self.frame("flows", kind)

    @waits
    def report_html(self, path: PathLike, /, **options: Any) -> None:
        """Writes the report of the run as one HTML file; `options` are those of
        `windtunnel report`."""
        page.write([self.folder], os.fspath(path), options)

    @waits
    def plot(
        self,
        path: PathLike,
        /,
        what: Union[str, Sequence[str]] = "throughput",
        link: Union[str, Sequence[str], None] = None,
        **options: Any,
    ) -> None:
        """Draws what links did to an SVG, PNG or PDF file; `options` are those of
        `windtunnel plot`, such as `size` and `title`."""
        chosen = what if isinstance(what, str) else ",".join(what)
        page.need("plot")
        program.output("plot", self.folder, what=chosen, link=link, output=path, **options)

    def web(self, **options: Any) -> subprocess.Popen[str]:
        """Serves the page of the run on loopback, until the returned process is ended; its
        address is the first line that the process writes."""
        return page.serve(self.folder, options)

    def _json(self, name: str) -> Any:
        return json.loads(below.read(self.folder, name))

    def _repr_html_(self) -> str:
        return page.cell(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.folder}>"


def compare(runs: Sequence[Union[Results, PathLike]], path: PathLike, /, **options: Any) -> None:
    """Lays runs over each other in one HTML report."""
    folders = [run.folder if isinstance(run, Results) else os.fspath(run) for run in runs]
    page.write(folders, os.fspath(path), options)

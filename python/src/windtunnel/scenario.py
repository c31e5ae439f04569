"""What can be checked and run: a file, or a network built in code."""

from __future__ import annotations

import os
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Callable, Optional, Union, cast

from windtunnel import errors, launch, program
from windtunnel.aio import waits
from windtunnel.run import Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

    PathLike = Union[str, "os.PathLike[str]"]


class Scenario:
    """Nodes with programs, and the network between them."""

    def to_yaml(self) -> str:
        """The scenario as a file has it."""
        raise NotImplementedError

    def source(self) -> launch.Source:
        """What the program is given."""
        raise NotImplementedError

    @waits
    def check(self, /, **options: Any) -> dict[str, Any]:
        """Validates it and returns its paths, without running anything; `options` are those of
        `windtunnel check`, such as `events=True`.

        Raises:
            ScenarioError: it has mistakes, each with its place.
        """
        source = self.source()
        try:
            answer = program.ask(
                "check", source.file or "-", input=source.text, cwd=source.folder, **options
            )
        except errors.ScenarioError as error:
            raise self._placed(error) from None
        return cast("dict[str, Any]", answer)

    @waits
    def run(
        self,
        /,
        *,
        out: Optional[PathLike] = None,
        check: Optional[bool] = None,
        show: bool = False,
        **options: Unpack[launch.RunOptions],
    ) -> Run:
        """Starts it, and waits until it has begun.

            with net.run(seed=1) as run:
                run["web"].exec(["uname", "-n"])

        Args:
            out: the run folder, new or empty; else `runs/NAME-DATE-TIME`.
            check: what the end of the block raises. By default what has not passed: a program or an
                expectation that failed; a run that is not faithful gives a warning. With `True` an
                exception, too. With `False` nothing is raised.
            show: whether standard error shows what happens, and what programs write.
            options: those of `windtunnel run`: `seed`, `duration`, `max_lateness`, `record` …

        Raises:
            ScenarioError: it has mistakes.
            MachineError: this machine does not allow it.
        """
        try:
            child = launch.start(self.source(), out, show, options)
        except errors.ScenarioError as error:
            raise self._placed(error) from None
        return Run(child.folder, child, check)

    def run_async(
        self,
        *,
        out: Optional[PathLike] = None,
        check: Optional[bool] = None,
        show: bool = False,
        **options: Unpack[launch.RunOptions],
    ) -> _Starting:
        """The same for `async with`: `async with net.run_async(seed=1) as run:`. What waits in
        the block is awaited by `aio`: `await run["web"].exec.aio(…)`."""
        return _Starting(lambda: self.run.aio(out=out, check=check, show=show, **options))

    def _placed(self, error: errors.ScenarioError) -> errors.ScenarioError:
        """An error whose places are those that the caller knows."""
        return error


class _Starting:
    """A run that `async with` starts."""

    def __init__(self, start: Callable[[], Awaitable[Run]]) -> None:
        self._start = start
        self._run: Optional[Run] = None

    async def __aenter__(self) -> Run:
        self._run = await self._start()
        return self._run

    async def __aexit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self._run is not None
        await self._run.__aexit__(kind, error, trace)


class File(Scenario):
    """A scenario file. It stays as it is, and relative paths in it start at its folder."""

    def __init__(self, path: PathLike) -> None:
        self.path = os.path.abspath(path)
        if not os.path.isfile(self.path):
            raise errors.ScenarioError(f"there is no file {self.path}")

    @property
    def name(self) -> str:
        """The file's name without `.yaml`."""
        return os.path.splitext(os.path.basename(self.path))[0]

    def to_yaml(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def to_dict(self) -> dict[str, Any]:
        """The file as a dict, to be changed and given to `Network.of_dict`; needs PyYAML."""
        try:
            import yaml  # type: ignore[import-untyped]
        except ImportError:
            raise errors.NotSupported(
                f"{self.path} is read by PyYAML, which is not installed",
                "only the program reads a file otherwise: `check` and `run` need nothing",
            ) from None
        return cast("dict[str, Any]", yaml.safe_load(self.to_yaml()))

    def source(self) -> launch.Source:
        return launch.Source(self.name, self.path, None, None)

    def _repr_html_(self) -> str:
        from windtunnel import drawing

        try:
            return drawing.of_document(self.to_dict())
        except errors.NotSupported:
            return f"<pre>{drawing.escaped(self.to_yaml())}</pre>"

    def __repr__(self) -> str:
        return f"<File {self.path}>"


def load(path: PathLike) -> File:
    """The scenario in a file."""
    return File(path)

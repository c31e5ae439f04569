"""`windtunnel run` as a child process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Optional, Union

from windtunnel import below, control, errors, events, program
from windtunnel.aio import interruptible
from windtunnel.watch import (
    CREATED,
    MODIFIED,
    Deadline,
    Interrupter,
    Watch,
    process_descriptor,
    until_ready,
)

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    PathLike = Union[str, "os.PathLike[str]"]

    class RunOptions(TypedDict, total=False):
        """The options of `windtunnel run`, but for `--out`, `--json` and `--quiet`."""

        seed: int
        duration: str
        max_lateness: str
        on_overload: str
        output_limit: str
        no_offload: bool
        packet_memory: str
        allow_internet: bool
        allow_host: bool
        reserve: Union[str, Mapping[str, Any]]
        record: Union[str, bool, Sequence[str]]
        anonymous: bool
        measure_overhead: bool
        pcap: Union[str, Sequence[str]]
        junit: PathLike
        report: bool
        verbose: bool
        raw: bool
        hosts: Union[str, Sequence[str]]
        ssh: str
        remote_windtunnel: str
        clock_offsets: str
        key: PathLike
        attempts: int
        wait_quiet: str
        plain: bool
        detach: bool


class Source(NamedTuple):
    """What is run: a file, or a text with the folder in which relative paths start."""

    name: str
    file: Optional[str]
    text: Optional[str]
    folder: Optional[str]


class Child:
    """A process of `windtunnel run`, and its end."""

    def __init__(self, source: Source, folder: str, show: bool, options: Mapping[str, Any]) -> None:
        import tempfile

        self.folder = folder
        self._stdout: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        words = program.arguments(
            "run", source.file or "-", out=folder, json=True, quiet=not show, **_as_flags(options)
        )
        self._child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL if source.text is None else subprocess.PIPE,
            stdout=self._stdout,
            stderr=None if show else self._stderr,
            cwd=source.folder,
        )
        self._guard = _Guard(self._child.pid)
        self._ended = process_descriptor(self._child.pid)
        self.report: Optional[dict[str, Any]] = None
        if self._child.stdin is not None:
            # A child that has ended says why.
            with contextlib.suppress(BrokenPipeError), self._child.stdin as pipe:
                pipe.write((source.text or "").encode())

    @property
    def pid(self) -> int:
        return self._child.pid

    def until_begun(self, watch: Watch) -> bool:
        """Waits for the first event of the run; false: it has ended before that."""
        interrupter = Interrupter()
        try:
            with interruptible(interrupter.set):
                while not _has_line(self.folder) and self._child.poll() is None:
                    until_ready(watch.fileno(), self._ended, interrupter.fileno())
                    watch.clear()
                    if interrupter.is_set:
                        self.end()
        finally:
            interrupter.close()
        return control.is_live(self.folder)

    def wait(self, timeout: Optional[float] = None) -> None:
        """Waits for its end.

        Raises:
            TimeoutExpired: it goes on.
            WindtunnelError: it has failed before there was a run, or while there was one.
        """
        if self._ended < 0:
            return
        deadline, interrupter = Deadline(timeout), Interrupter()
        try:
            with interruptible(interrupter.set):
                until_ready(self._ended, interrupter.fileno(), deadline=deadline)
        finally:
            interrupter.close()
        if self._child.poll() is None:
            if interrupter.is_set:
                return
            raise errors.TimeoutExpired(f"the run in {self.folder} goes on after {timeout} s")
        self._conclude()

    def end(self) -> None:
        """Ends it like Ctrl-C, and at a second call like a second Ctrl-C."""
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGINT)

    def has_ended(self) -> bool:
        return self._child.poll() is not None

    def _conclude(self) -> None:
        stdout, stderr = _text(self._stdout), _text(self._stderr)
        os.close(self._ended)
        self._ended = -1
        self._guard.dismiss()
        with contextlib.suppress(ValueError):
            written = json.loads(stdout)
            if "verdict" in written:
                self.report = written
                return
        if self._child.returncode != 0:
            raise program.failure(self._child.returncode, stdout, stderr)


class _Guard:
    """Ends the run if this process ends without ending it, however that happens: a shell reads a
    pipe of which this process alone holds the other end."""

    def __init__(self, pid: int) -> None:
        read, self._write = os.pipe()
        try:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", 'read -r line || kill -TERM "$0"', str(pid)],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(read)

    def dismiss(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._write, b"ended\n")
        os.close(self._write)
        self._shell.wait()


def start(source: Source, out: Optional[PathLike], show: bool, options: Mapping[str, Any]) -> Child:
    """Starts a run and waits until it has begun.

    Raises:
        WindtunnelError: there is no run; its mistakes are those of the scenario, the machine …
    """
    try:
        folder = _new_folder(source.name) if out is None else _made(out)
    except OSError as error:
        text = f"cannot make the run folder {error.filename}: {error.strerror}"
        raise errors.MachineError(text, "name another one with `out`") from error
    with Watch(folder, CREATED | MODIFIED) as watch:
        child = Child(source, folder, show, options)
        try:
            if not child.until_begun(watch):
                child.wait()  # raises, unless the run was too short to be seen
        except BaseException:
            child.end()
            # What is raised here is the first failure, which is not to be replaced.
            with contextlib.suppress(errors.WindtunnelError):
                child.wait()
            _remove_if_empty(folder)
            raise
    if out is None:
        _link_latest(folder)
    return child


def _as_flags(options: Mapping[str, Any]) -> dict[str, Any]:
    flags = dict(options)
    if flags.get("record") is True:
        flags["record"] = "true"
    elif flags.get("record") is False:
        flags["record"] = "off"
    for key in ("record", "pcap", "hosts"):
        value = flags.get(key)
        if value is not None and not isinstance(value, str):
            flags[key] = ",".join(value)
    reserve = flags.get("reserve")
    if isinstance(reserve, Mapping):
        flags["reserve"] = [f"{name}={json.dumps(value)}" for name, value in reserve.items()]
    return flags


def _made(out: PathLike) -> str:
    folder = os.path.abspath(out)
    os.makedirs(folder, exist_ok=True)
    return folder


def _new_folder(name: str) -> str:
    """`runs/NAME-DATE-TIME`, as the command makes it."""
    stem = time.strftime(f"{name}-%Y%m%d-%H%M%S")
    runs = os.path.abspath("runs")
    os.makedirs(runs, exist_ok=True)
    number = 1
    while True:
        folder = os.path.join(runs, stem if number == 1 else f"{stem}-{number}")
        try:
            os.mkdir(folder)
            return folder
        except FileExistsError:
            number += 1


def _link_latest(folder: str) -> None:
    """Has `runs/latest` lead to it."""
    runs, name = os.path.split(folder)
    link = os.path.join(runs, f".latest-{name}")
    # Another run may have linked itself meanwhile; either is as new.
    with contextlib.suppress(OSError):
        os.symlink(name, link)
        os.replace(link, os.path.join(runs, "latest"))


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _has_line(folder: str) -> bool:
    try:
        with below.file(folder, events.NAME) as file:
            return b"\n" in file.read(1 << 16)
    except FileNotFoundError:
        return False


def _text(file: IO[bytes]) -> str:
    with file:
        file.seek(0)
        return file.read().decode(errors="replace")

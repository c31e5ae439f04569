"""Commands in nodes of a live run, in the manner of `subprocess`."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping, Sequence
from typing import IO, Any, NamedTuple, Optional, Union

from windtunnel import control, errors
from windtunnel.aio import interruptible
from windtunnel.watch import Deadline, until_ready

PIPE = -1
DEVNULL = -3
STDOUT = -2

Argv = Union[str, Sequence[Union[str, "os.PathLike[str]"]]]
Stream = Union[int, IO[Any], None]


class Completed:
    """A command that has exited. `stdout` and `stderr` are text, in which what is no UTF-8 is
    replaced; `stdout_bytes` and `stderr_bytes` have it as it was."""

    def __init__(self, argv: Sequence[str], returncode: int, stdout: bytes, stderr: bytes) -> None:
        self.argv = list(argv)
        self.returncode = returncode
        self.stdout_bytes = stdout
        self.stderr_bytes = stderr

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode(errors="replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode(errors="replace")

    def check(self) -> Completed:
        """Raises `CommandFailed` if it exited with another code than 0."""
        if self.returncode != 0:
            raise errors.CommandFailed(self.argv, self.returncode, self.stdout, self.stderr)
        return self

    def __repr__(self) -> str:
        return f"<Completed {shlex.join(self.argv)}: exited with {self.returncode}>"


class _Ends(NamedTuple):
    """The ends of the three streams of a command."""

    theirs: list[int]
    ours: list[Optional[IO[bytes]]]
    opened: list[int]


class Process:
    """A command that runs in a node. Like `subprocess.Popen`: `stdin`, `stdout` and `stderr` are
    files of bytes where `PIPE` was asked for."""

    def __init__(
        self,
        folder: str,
        node: str,
        argv: Argv,
        stdin: Stream = DEVNULL,
        stdout: Stream = PIPE,
        stderr: Stream = PIPE,
        env: Optional[Mapping[str, str]] = None,
        cwd: Union[str, os.PathLike[str], None] = None,
    ) -> None:
        self.argv = words(argv)
        self.node = node
        self.returncode: Optional[int] = None
        self._run = control.Connection(folder)
        ends = _ends(stdin, stdout, stderr)
        fields = {
            "node": node,
            "argv": self.argv,
            "cwd": os.path.abspath(cwd or os.getcwd()),
            "env": {key: str(value) for key, value in (env or {}).items()},
            "terminal": False,
        }
        try:
            self._run.send("exec", fields, ends.theirs)
            self.pid = int(self._run.receive()["pid"])
        except BaseException:
            for end in ends.ours:
                if end is not None:
                    end.close()
            self._run.close()
            raise
        finally:
            for descriptor in ends.opened:
                os.close(descriptor)
        self.stdin, self.stdout, self.stderr = ends.ours

    def poll(self) -> Optional[int]:
        """Its exit code, if it has exited; 128+n for a signal n."""
        while self.returncode is None and self._run.has_answer():
            self._receive()
        return self.returncode

    def wait(self, timeout: Optional[float] = None) -> int:
        """Waits until it has exited, and returns its exit code."""
        deadline = Deadline(timeout)
        with interruptible(self._run.close):
            while self.poll() is None:
                if not until_ready(self._run.fileno(), deadline=deadline):
                    raise errors.TimeoutExpired(f"{shlex.join(self.argv)} runs after {timeout} s")
        assert self.returncode is not None
        return self.returncode

    def communicate(
        self, input: Optional[bytes] = None, timeout: Optional[float] = None
    ) -> tuple[bytes, bytes]:
        """Writes `input`, reads all output, and waits until it has exited."""
        exchange = _Exchange(self, input)
        with interruptible(self._run.close):
            exchange.carry(Deadline(timeout))
        try:
            self.wait(timeout)
        except errors.NoRun:
            self.close()
            raise
        return exchange.written(self.stdout), exchange.written(self.stderr)

    def send_signal(self, number: int) -> None:
        """Sends a signal to it."""
        if self.poll() is None:
            self._run.send("signal", {"signal": int(number)})

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Lets go of it: if it still runs, it gets SIGHUP and then SIGKILL."""
        for end in (self.stdin, self.stdout, self.stderr):
            if end is not None and not end.closed:
                end.close()
        self._run.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _receive(self) -> None:
        answer = self._run.receive()
        if answer["reply"] == "exited":
            self.returncode = int(answer["code"])
            self._run.close()


class _Exchange:
    """All input of a command, and all its output."""

    def __init__(self, process: Process, input: Optional[bytes]) -> None:
        self._process = process
        self._input = memoryview(input or b"")
        self._read: dict[IO[bytes], bytearray] = {}
        import selectors

        self._selector = selectors.DefaultSelector()
        if process.stdin is not None:
            if self._input:
                os.set_blocking(process.stdin.fileno(), False)
                self._selector.register(process.stdin, selectors.EVENT_WRITE)
            else:
                process.stdin.close()
        for end in (process.stdout, process.stderr):
            if end is not None:
                self._selector.register(end, selectors.EVENT_READ)
                self._read[end] = bytearray()

    def written(self, end: Optional[IO[bytes]]) -> bytes:
        return bytes(self._read[end]) if end is not None else b""

    def carry(self, deadline: Deadline) -> None:
        with self._selector:
            while self._selector.get_map():
                left = deadline.left_ms()
                ready = self._selector.select(None if left is None else left / 1000)
                if not ready and deadline.is_over():
                    process = self._process
                    raise errors.TimeoutExpired(
                        f"{shlex.join(process.argv)} had not ended in time in {process.node}",
                        self.written(process.stdout),
                        self.written(process.stderr),
                    )
                for key, _ in ready:
                    end: Any = key.fileobj
                    act = self._write if end is self._process.stdin else self._take
                    act(end)

    def _write(self, end: IO[bytes]) -> None:
        try:
            self._input = self._input[os.write(end.fileno(), self._input[: 1 << 16]) :]
        except BrokenPipeError:
            self._input = memoryview(b"")  # it reads no more, which is its own affair
        if not self._input:
            self._selector.unregister(end)
            end.close()

    def _take(self, end: IO[bytes]) -> None:
        more = os.read(end.fileno(), 1 << 16)
        self._read[end] += more
        if not more:
            self._selector.unregister(end)
            end.close()


def words(argv: Argv) -> list[str]:
    """A text is split as a shell would; no shell runs it."""
    return shlex.split(argv) if isinstance(argv, str) else [os.fspath(word) for word in argv]


def _ends(stdin: Stream, stdout: Stream, stderr: Stream) -> _Ends:
    ends = _Ends([], [], [])
    for number, stream in enumerate((stdin, stdout, stderr)):
        ours: Optional[IO[bytes]] = None
        if stream == PIPE:
            read, write = os.pipe()
            ours = open(write, "wb", 0) if number == 0 else open(read, "rb", 0)  # noqa: SIM115
            theirs = read if number == 0 else write
            ends.opened.append(theirs)
        elif stream == DEVNULL:
            theirs = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            ends.opened.append(theirs)
        elif stream == STDOUT:
            theirs = ends.theirs[1]
        elif stream is None:
            theirs = number
        else:
            theirs = stream if isinstance(stream, int) else stream.fileno()
        ends.theirs.append(theirs)
        ends.ours.append(ours)
    return ends

"""The control socket of a live run: a line of JSON for each request and each answer."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Union

from windtunnel import below, errors
from windtunnel.aio import interruptible

VERSION = 3
"""That of the messages; a run greets each connection with its own."""

NAME = "control.sock"

LINE_BYTES_MAX = 256 << 20


class Connection:
    """A connection to the run in a folder. Requests of several threads come one after the other."""

    def __init__(self, folder: Union[str, os.PathLike[str]]) -> None:
        self.folder = os.fspath(folder)
        self._waiting = bytearray()
        self._lock = threading.Lock()
        self._socket = _connect(self.folder)
        try:
            self._greet()
        except BaseException:
            self._socket.close()
            raise

    def ask(self, request: str, **fields: Any) -> dict[str, Any]:
        """Sends a request and returns its one answer."""
        with self._lock:
            self.send(request, fields)
            return self.receive()

    def send(
        self, request: str, fields: Mapping[str, Any], descriptors: Sequence[int] = ()
    ) -> None:
        """Sends a request with the descriptors that go with it."""
        words = {"request": request}
        words.update((key, value) for key, value in fields.items() if value is not None)
        line = json.dumps(words, separators=(",", ":")).encode() + b"\n"
        try:
            sent = socket.send_fds(self._socket, [line], descriptors) if descriptors else 0
            self._socket.sendall(line[sent:])
        except OSError as error:
            raise self._gone(error) from error

    def receive(self) -> dict[str, Any]:
        """The next answer; refusals are exceptions."""
        return self._judge(self._read())

    def fileno(self) -> int:
        return self._socket.fileno()

    def has_answer(self) -> bool:
        """Whether an answer is there, without waiting for it, or the connection is at its end."""
        import select

        if b"\n" in self._waiting:
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def until_closed(self) -> None:
        """Waits for the end of the run, with which connections end."""
        with interruptible(self.close), self._lock:
            with contextlib.suppress(errors.NoRun):
                while True:
                    self._read()
            self._socket.close()

    def close(self) -> None:
        """Ends the connection; a thread that waits for an answer gets none."""
        with contextlib.suppress(OSError):  # it may have ended already
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _greet(self) -> None:
        hello = self._read()
        if hello.get("version") != VERSION:
            theirs = hello.get("version")
            raise errors.ControlError(
                f"the run in {self.folder} speaks version {theirs}, this package version {VERSION}",
                "use the package of the windtunnel that started the run",
            )
        if hello.get("refused"):
            raise errors.ControlError(
                f"the run in {self.folder} takes no more connections: {hello['refused']}",
                "end other commands on this run",
            )

    def _read(self) -> dict[str, Any]:
        scanned = 0
        while (end := self._waiting.find(b"\n", scanned)) < 0:
            scanned = len(self._waiting)
            if scanned > LINE_BYTES_MAX:
                raise errors.ControlError(f"an answer of the run in {self.folder} does not end")
            try:
                more = self._socket.recv(1 << 16)
            except OSError as error:
                raise self._gone(error) from error
            if not more:
                raise self._gone(None)
            self._waiting += more
        line = bytes(self._waiting[:end])
        del self._waiting[: end + 1]
        message = json.loads(line)
        if not isinstance(message, dict):
            raise errors.ControlError(f"an answer of the run in {self.folder} is not one")
        return message

    def _judge(self, message: dict[str, Any]) -> dict[str, Any]:
        kind = message.get("reply")
        if kind == "error":
            raise errors.ControlError(message["message"], message.get("hint"))
        if kind == "not-run":
            raise errors.CommandNotRun(message["message"], message.get("exit") or 126)
        if kind == "elsewhere":
            raise errors.ControlError("what is named is on another machine of the run")
        return message

    def _gone(self, error: Any) -> errors.NoRun:
        cause = "" if error is None else f": {error.strerror or error}"
        return errors.NoRun(f"the run in {self.folder} has closed the connection{cause}")


def is_live(folder: Union[str, os.PathLike[str]]) -> bool:
    """Whether a run lives in a folder."""
    try:
        Connection(folder).close()
    except errors.ControlError:
        return False
    return True


def _connect(folder: str) -> socket.socket:
    """Socket addresses hold 107 bytes of path (unix(7)), run folders may be deeper: the socket is
    named through the descriptor of its folder."""
    try:
        place = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    except OSError as error:
        raise _no_run(folder, error) from error
    if not below.is_socket(place, NAME):
        os.close(place)
        raise _no_run(folder, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(f"/proc/self/fd/{place}/{NAME}")
    except PermissionError as error:
        connection.close()
        raise errors.ControlError(
            f"the run in {folder} is another user's",
            "only the user that started it and root can control it",
        ) from error
    except OSError as error:
        connection.close()
        raise _no_run(folder, error) from error
    finally:
        os.close(place)
    return connection


def _no_run(folder: str, error: OSError) -> errors.NoRun:
    return errors.NoRun(
        f"no live run in {folder}: {error.strerror}", "start one with `Network.run`"
    )

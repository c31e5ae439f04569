"""Files of a run folder, in which a program of the run or a stranger may have put anything: no link
is followed, nothing outside is reached, what is not a regular file is not read, and no more is read
than has its place in memory."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from windtunnel import errors

MOST = 256 << 20
"""The most bytes of a file that is read whole."""
LINE_MOST = 1 << 20
"""The most bytes of a line."""


def file(folder: str, *names: str) -> BinaryIO:
    """Opens a regular file in the folder to be read; it does not wait for another end of a pipe.

    `FileNotFoundError` if there is none.
    """
    place = os.path.join(folder, *names)
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        for name in names[:-1]:
            inner = _open(at, name, os.O_PATH | os.O_DIRECTORY, place)
            os.close(at)
            at = inner
        # A terminal must not become this process's own.
        found = _open(at, names[-1], os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, place)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise _strange(place, "is no regular file")
    return open(found, "rb")


def read(folder: str, *names: str) -> bytes:
    """The whole file."""
    with file(folder, *names) as found:
        content = found.read(MOST + 1)
    if len(content) > MOST:
        raise _strange(os.path.join(folder, *names), f"has more than {MOST >> 20} MiB")
    return content


def lines(folder: str, *names: str) -> Iterator[bytes]:
    """The whole lines of the file; a last one without an end was cut, and is left out."""
    with file(folder, *names) as found:
        while True:
            line = found.readline(LINE_MOST + 1)
            if not line.endswith(b"\n"):
                if len(line) > LINE_MOST:
                    raise long_line(os.path.join(folder, *names))
                return
            yield line


def names(folder: str, *below: str) -> list[str]:
    """What is in a folder of it, sorted; nothing if there is no such folder."""
    at = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        for name in below:
            inner = _open(at, name, os.O_RDONLY | os.O_DIRECTORY, os.path.join(folder, *below))
            os.close(at)
            at = inner
        return sorted(os.listdir(at))
    except (FileNotFoundError, NotADirectoryError):
        return []
    finally:
        os.close(at)


def is_socket(at: int, name: str) -> bool:
    """Whether a socket, and no link to one, has this name in an open folder."""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISSOCK(found.st_mode)


def long_line(place: str) -> errors.StrangeFile:
    """The error for a line that does not end."""
    return _strange(place, f"has a line of more than {LINE_MOST >> 20} MiB")


def _open(at: int, name: str, flags: int, place: str) -> int:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise _strange(place, "is not in the run folder")
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        if error.errno == errno.ELOOP or _is_link(at, name):
            raise _strange(place, "is a link, which is not followed") from None
        if error.errno == errno.ENXIO:
            raise _strange(place, "is no regular file") from None
        error.filename = place
        raise


def _is_link(at: int, name: str) -> bool:
    """With O_DIRECTORY a link is reported as what is no folder (openat(2))."""
    try:
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISLNK(found.st_mode)


def _strange(place: str, why: str) -> errors.StrangeFile:
    return errors.StrangeFile(f"{place} {why}", "this is not what a run leaves: somebody made it")

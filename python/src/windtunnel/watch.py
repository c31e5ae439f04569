"""Waiting for changes of a folder's files, and for the end of a process, without looking again and
again: inotify(7) and pidfd_open(2)."""

from __future__ import annotations

import os
import select
import time
from typing import Optional, Union

CREATED = 0x100 | 0x80
"""A file was made, or moved there."""
MODIFIED = 0x2
CLOSED = 0x8
"""A file that was open for writing was closed."""
MOVED = 0x800
"""The watched folder itself was moved or removed."""


class Watch:
    """Changes of a folder or file since this was made, or since the last `clear`."""

    def __init__(self, path: Union[str, os.PathLike[str]], mask: int) -> None:
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), "inotify")
        if libc.inotify_add_watch(self._fd, os.fsencode(path), mask) < 0:
            number = ctypes.get_errno()
            os.close(self._fd)
            raise OSError(number, os.strerror(number), os.fspath(path))

    def fileno(self) -> int:
        return self._fd

    def clear(self) -> None:
        """Forgets the changes until now."""
        try:
            while os.read(self._fd, 1 << 16):
                pass
        except BlockingIOError:
            pass

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Deadline:
    """A time limit; `None` for none."""

    def __init__(self, seconds: Optional[float]) -> None:
        self._at = None if seconds is None else time.monotonic() + seconds

    def left_ms(self) -> Optional[float]:
        if self._at is None:
            return None
        return max(0.0, (self._at - time.monotonic()) * 1000)

    def is_over(self) -> bool:
        return self._at is not None and time.monotonic() >= self._at


def until_ready(*descriptors: int, deadline: Optional[Deadline] = None) -> list[int]:
    """Waits until one of these can be read or is at its end; none of them: the deadline came."""
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    left = deadline.left_ms() if deadline else None
    return [descriptor for descriptor, _ in poll.poll(left)]


def process_descriptor(pid: int) -> int:
    """A descriptor that is readable when a child has ended (pidfd_open(2))."""
    if hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    # Pythons that are built for old C libraries lack it; its number is that of all machines.
    import ctypes

    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(434, pid, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "pidfd_open")
    os.set_inheritable(descriptor, False)
    return descriptor


class Interrupter:
    """A descriptor that becomes readable when another thread asks for it."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        self.is_set = False

    def fileno(self) -> int:
        return self._read

    def set(self) -> None:
        self.is_set = True
        os.write(self._write, b"x")

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)
